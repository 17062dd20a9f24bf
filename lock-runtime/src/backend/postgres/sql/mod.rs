//! Schema and functions as one script: the one list of the files that it is joined from.

/// The version of the schema that this build installs.
pub(crate) const VERSION: i32 = 9;

/// The text with the variables `:"schema"`, `:'schema'` and `:'version'`, as `psql` writes them.
const TEMPLATE: &str = concat!(
    include_str!("begin.sql"),
    include_str!("tables.sql"),
    include_str!("types.sql"),
    include_str!("keys.sql"),
    include_str!("rows.sql"),
    include_str!("holding.sql"),
    include_str!("queue.sql"),
    include_str!("commit.sql"),
    include_str!("quarantine.sql"),
    include_str!("acquire.sql"),
    include_str!("acquire_unless_full.sql"),
    include_str!("release.sql"),
    include_str!("renew.sql"),
    include_str!("pass.sql"),
    include_str!("downgrade.sql"),
    include_str!("tickets.sql"),
    include_str!("ask.sql"),
    include_str!("many.sql"),
    include_str!("status.sql"),
    include_str!("list.sql"),
    include_str!("history.sql"),
    include_str!("force.sql"),
    include_str!("held.sql"),
    include_str!("ask_to_yield.sql"),
    include_str!("sweep.sql"),
    include_str!("assert_fence.sql"),
    include_str!("end.sql"),
);

/// The SQL that installs or upgrades the tables and functions of `postgres://` in this schema, for
/// people's migrations.
///
/// It is one transaction, harmless if repeated, and refuses to replace a newer version. A manager
/// runs it when it connects, unless its URL has `install=never`. `lockctl sql` prints it, and
/// `docs/postgres.md` of the repository says which rights it needs.
#[must_use]
pub fn script(schema: &str) -> String {
    TEMPLATE
        .replace(":\"schema\"", &identifier(schema))
        .replace(":'schema'", &literal(schema))
        .replace(":'version'", &literal(&VERSION.to_string()))
}

/// A name as SQL writes it.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Read the same way whatever `standard_conforming_strings` is.
fn literal(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\'', "''");
    if escaped.contains('\\') {
        format!("E'{escaped}'")
    } else {
        format!("'{escaped}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_stands_quoted_wherever_the_script_names_it() {
        let script = script(r#"my "odd" schema's \"#);
        assert!(script.contains(r#"SET LOCAL search_path = "my ""odd"" schema's \", pg_temp;"#));
        assert!(script.contains(r#"SET LOCAL lock_runtime.schema = E'my "odd" schema''s \\';"#));
        for variable in [":\"", ":'"] {
            assert!(!script.contains(variable), "{variable}");
        }
    }
}
