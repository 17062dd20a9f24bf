//! The table in `docs/tested.md`: a row for each store and profile.

use super::{Profile, Servers, soak::Tally};

/// The page that has the table.
pub const PAGE: &str = "docs/tested.md";
/// How the table begins.
const HEADER: &str = "| store | profile |";

/// What a soak has shown of one profile on one store.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The store.
    pub servers: Servers,
    /// The profile.
    pub profile: Profile,
    /// What was tested.
    pub commit: &'a str,
    /// What was seen.
    pub tally: &'a Tally,
}

impl Row<'_> {
    fn line(&self) -> String {
        let Self {
            servers,
            profile,
            commit,
            tally,
        } = self;
        let promises = profile.promises(*servers);
        let cells = [
            servers.name().to_owned(),
            profile.name().to_owned(),
            tally.date.clone(),
            format!("`{commit}`"),
            tally.grants.to_string(),
            tally.adoptions.to_string(),
            unless(promises.exclusive, tally.overlaps),
            tally.overlong.to_string(),
            unless(promises.fences, tally.fences),
            tally.left_behind.to_string(),
            format!("{} ms", tally.recovery.as_millis()),
            match tally.findings {
                0 => "nothing".to_owned(),
                findings => findings.to_string(),
            },
        ];
        format!("| {} |", cells.join(" | "))
    }
}

/// A number of violations, if it is promised that there are none.
fn unless(promised: bool, count: usize) -> String {
    if promised || count == 0 {
        return count.to_string();
    }
    format!("{count} (not promised)")
}

/// The page with these rows, each in the place of an earlier one about the same.
///
/// # Panics
///
/// If the page has no such table.
pub fn with_rows(page: &str, rows: &[Row<'_>]) -> String {
    let start = page.find(HEADER).expect("the page has the table");
    let end = page[start..].find("\n\n").map(|length| start + length);
    let (table, rest) = page[start..].split_at(end.unwrap_or(page.trim_end().len()) - start);
    let mut lines = table.lines();
    let head: Vec<_> = lines.by_ref().take(2).collect();
    let mut all: Vec<String> = lines.map(str::to_owned).collect();
    for row in rows.iter().map(Row::line) {
        all.retain(|it| place(it) != place(&row));
        all.push(row);
    }
    all.sort_by_key(|it| place(it));
    format!(
        "{}{}\n{}{rest}",
        &page[..start],
        head.join("\n"),
        all.join("\n")
    )
}

/// Where a row is, by the numbers of its store and its profile.
fn place(line: &str) -> (Option<usize>, Option<usize>) {
    let mut cells = line.split('|').skip(1).map(str::trim);
    let [store, profile] = [(); 2].map(|()| cells.next().unwrap_or_default());
    let store = Servers::ALL.iter().position(|(name, _)| *name == store);
    let profile = Profile::ALL.iter().position(|(name, _)| *name == profile);
    (store, profile)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::documents::repository::{read, rows_of_table};

    const BEFORE: &str = "# Tested\n\n| store | profile | … |\n|---|---|---|\n| redis | clients | old |\n\
        | redis | keys | old |\n| etcd | clients | old |\n";

    #[test]
    fn rows_are_replaced_and_added_in_their_order() {
        let tally = Tally {
            date: "2026-11-23".to_owned(),
            grants: 70,
            adoptions: 6,
            overlaps: 3,
            recovery: Duration::from_millis(20),
            findings: 2,
            ..Tally::default()
        };
        let row = |servers, profile| Row {
            servers,
            profile,
            commit: "a",
            tally: &tally,
        };
        let rows = [
            row(Servers::Postgres, Profile::Pooler),
            row(Servers::Redis, Profile::Keys),
            row(Servers::Redis, Profile::Network),
        ];
        let expected = "# Tested\n\n| store | profile | … |\n|---|---|---|\n| redis | clients | old |\n\
            | redis | network | 2026-11-23 | `a` | 70 | 6 | 3 | 0 | 0 | 0 | 20 ms | 2 |\n\
            | redis | keys | 2026-11-23 | `a` | 70 | 6 | 3 (not promised) | 0 | 0 | 0 | 20 ms | 2 |\n\
            | etcd | clients | old |\n\
            | postgres | pooler | 2026-11-23 | `a` | 70 | 6 | 3 | 0 | 0 | 0 | 20 ms | 2 |\n";
        assert_eq!(with_rows(BEFORE, &rows), expected);
        let with_text = |table: &str| format!("{table}\nText.\n");
        assert_eq!(with_rows(&with_text(BEFORE), &rows), with_text(expected));
    }

    #[test]
    fn the_rows_of_the_page_are_of_known_stores_and_their_profiles() {
        let page = read(PAGE);
        let rows = rows_of_table(&page, "", "store | profile");
        for row in rows {
            let (Some(store), Some(profile)) = place(row) else {
                panic!("no such store or profile: {row}");
            };
            let (servers, profile) = (Servers::ALL[store].1, Profile::ALL[profile].1);
            assert!(profile.suits(servers), "{row}");
        }
    }
}
