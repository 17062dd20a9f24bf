//! Tables and procedures as one script: the one list of the files that it is joined from.

/// The version of the procedures that this build installs.
pub(crate) const VERSION: i32 = 8;

/// Each statement ends with this line: the bodies of procedures have other statements in them.
const END: &str = "\n//\n";

/// Read in a statement of its own behind the one that locks a row, so that it goes on meanwhile even where the server takes
/// `SYSDATE` for `NOW`. It counts in the time zone of the session, which is UTC.
const CLOCK: &str = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)";

/// What a procedure whose name ends in `{noted}` also does in its second form, for managers that keep a history, in place of
/// these marks.
const NOTES: [(&str, &str); 5] = [
    ("{noted}", "_noted"),
    ("{keep}", ", IN p_keep INT"),
    // Behind the row of the lock, so that the end is not later than the next grant.
    (
        "{note moment}",
        "CALL lock_runtime_take(p_name, FALSE, v_found); SET t = {clock};",
    ),
    (
        "{note release}",
        "IF v_ours THEN CALL lock_runtime_note_release(p_name, p_token, t); END IF;",
    ),
    (
        "{note holders}",
        "CALL lock_runtime_note_holders(p_name, p_keep);",
    ),
];

/// Begins the transaction of a call; behind all other declarations.
const BEGIN: &str = "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;";

/// A server that became a replica takes nothing more, even if the owner of the procedures may write there. Calls that grant or
/// extend a lease ask again behind their `COMMIT`: the server may have become a replica while they waited for a row, and the
/// next primary may lack what they wrote.
const ONLY_A_PRIMARY: &str = "IF CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF') THEN
    SIGNAL SQLSTATE '25006' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'the server only reads, as a replica does: its `read_only` is on';
  END IF;";

/// The calls of a batch, as rows.
const CALLS: &str = "JSON_TABLE(p_calls, '$[*]' COLUMNS (
    number INT PATH '$[0]', action CHAR(1) CHARACTER SET latin1 PATH '$[1]',
    name VARCHAR(2310) CHARACTER SET latin1 PATH '$[2]', token CHAR(32) CHARACTER SET latin1 PATH '$[3]',
    ttl INT PATH '$[4]', who VARCHAR(8192) CHARACTER SET latin1 PATH '$[5]', first TINYINT PATH '$[6]'
  ))";

/// The names of a sweep, as rows.
const NAMES: &str =
    "JSON_TABLE(v_names, '$[*]' COLUMNS (name VARCHAR(2310) CHARACTER SET latin1 PATH '$'))";

/// Fences, as rows.
const FENCES: &str = "JSON_TABLE(v_fences, '$[*]' COLUMNS (fence BIGINT PATH '$'))";

/// Whether the session of a waiter is gone, and is not that of the caller.
const GONE: &str =
    "(session <> p_session AND IS_USED_LOCK(CONCAT('lock_runtime:', HEX(session))) IS NULL)";

/// How many permits a kind takes.
const PERMITS: &str =
    "IF(INSTR(p_kind, '/') > 0, CAST(SUBSTRING_INDEX(p_kind, '/', -1) AS UNSIGNED), 1)";

const TEMPLATE: &str = concat!(
    include_str!("begin.sql"),
    include_str!("tables.sql"),
    include_str!("holding.sql"),
    include_str!("queue.sql"),
    include_str!("history.sql"),
    include_str!("acquire.sql"),
    include_str!("release.sql"),
    include_str!("renew.sql"),
    include_str!("ask.sql"),
    include_str!("many.sql"),
    include_str!("downgrade.sql"),
    include_str!("tickets.sql"),
    include_str!("status.sql"),
    include_str!("list.sql"),
    include_str!("force.sql"),
    include_str!("sweep.sql"),
    include_str!("assert_fence.sql"),
    include_str!("end.sql"),
);

/// The SQL that installs or upgrades the tables and procedures of `mysql://`, for people's migrations.
///
/// It is written for the client `mysql`, which reads the `DELIMITER`, and works in the database that is in use. It is
/// harmless if repeated. A manager runs it when it connects, unless its URL has `install=never`. `lockctl sql --mysql`
/// prints it, and `docs/mysql.md` of the repository says which rights it needs.
#[must_use]
pub fn script() -> String {
    let statements: String = statements().map(|it| it + END).collect();
    format!("DELIMITER //\n{statements}DELIMITER ;\n")
}

/// The same, one statement after the other.
pub(crate) fn statements() -> impl Iterator<Item = String> {
    let all = TEMPLATE.split(END).filter(|it| !it.trim().is_empty());
    all.flat_map(forms).flat_map(|it| {
        let statement = it
            .replace("{begin}", BEGIN)
            .replace("{clock}", CLOCK)
            .replace("{gone}", GONE)
            .replace("{names}", NAMES)
            .replace("{fences}", FENCES)
            .replace("{permits}", PERMITS)
            .replace("{calls}", CALLS)
            .replace("{only a primary}", ONLY_A_PRIMARY)
            .replace("{version}", &VERSION.to_string());
        // Only MariaDB replaces a procedure in one statement.
        let before = procedure(&statement).map(|it| format!("DROP PROCEDURE IF EXISTS {it}"));
        before.into_iter().chain([statement])
    })
}

/// A statement, and for one with notes its second form.
fn forms(statement: &str) -> impl Iterator<Item = String> {
    let without = NOTES.iter().fold(statement.to_owned(), |text, (mark, _)| {
        text.replace(&format!("    {mark}\n"), "")
            .replace(&format!("  {mark}\n"), "")
            .replace(mark, "")
    });
    let noted = NOTES
        .iter()
        .fold(statement.to_owned(), |text, (mark, note)| {
            text.replace(mark, note)
        });
    let noted = Some(noted).filter(|it| *it != without);
    [without].into_iter().chain(noted)
}

/// The name of the procedure that a statement creates.
fn procedure(statement: &str) -> Option<&str> {
    let (_, rest) = statement.split_once("CREATE PROCEDURE ")?;
    rest.split_once('(').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_each_procedure_behind_the_end_of_its_former_version() {
        let statements: Vec<_> = statements().collect();
        let procedures = statements.iter().filter_map(|it| procedure(it));
        let dropped = statements
            .iter()
            .filter_map(|it| it.strip_prefix("DROP PROCEDURE IF EXISTS "));
        assert!(dropped.eq(procedures));
        let script = script();
        for mark in [
            "{begin}",
            "{clock}",
            "{gone}",
            "{names}",
            "{fences}",
            "{permits}",
            "{calls}",
            "{only a",
            "{version}",
            "{note",
            "{keep}",
        ] {
            assert!(!script.contains(mark), "{mark}");
        }
        assert_eq!(script.matches(END).count(), statements.len());
    }
}
