//! How many standbys have a grant before the server answers.

use crate::backend::sql::trouble::Trouble;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standbys {
    waited_for: usize,
    /// Whether the role does not wait for them.
    is_local: bool,
}

impl Standbys {
    /// Reads the settings `synchronous_standby_names` and `synchronous_commit`.
    pub(super) fn read(names: &str, commit: &str) -> Self {
        Self {
            waited_for: waited_for(names),
            is_local: commit == "local",
        }
    }

    /// Refuses a server that waits for fewer.
    pub(super) fn demand(self, replicas: usize) -> Result<(), Trouble> {
        if replicas > self.waited_for {
            let why = format!(
                "the server waits for {} standbys and not for {replicas}: set its \
                 `synchronous_standby_names = 'ANY {replicas} (…)'`",
                self.waited_for
            );
            return Err(Trouble::invalid("replicas", why));
        }
        if replicas > 0 && self.is_local {
            let why = "the role's `synchronous_commit` is `local`, which waits for no standby: set it to `on`";
            return Err(Trouble::invalid("replicas", why));
        }
        Ok(())
    }
}

/// As in `ANY 2 (a, b, c)`, `FIRST 1 (a, b)`, `1 (a)`, or a list, of which the first one counts.
fn waited_for(names: &str) -> usize {
    let names = names.trim();
    let Some((head, _)) = names.split_once('(') else {
        return usize::from(!names.is_empty());
    };
    let number = head.split_whitespace().last();
    number.and_then(|it| it.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_says_how_many_standbys_are_waited_for() {
        for (names, expected) in [
            ("", 0),
            (" ", 0),
            ("*", 1),
            ("a, b", 1),
            ("2 (a, b)", 2),
            ("FIRST 1 (a, b)", 1),
            ("any 3(a, b, c)", 3),
            ("\"(\"", 1),
        ] {
            assert_eq!(waited_for(names), expected, "{names}");
        }
    }

    #[test]
    fn fewer_standbys_than_asked_for_are_refused() {
        for (names, commit, replicas, is_enough) in [
            ("", "on", 0, true),
            ("", "local", 0, true),
            ("a", "on", 1, true),
            ("a", "off", 1, true),
            ("a", "local", 1, false),
            ("a", "on", 2, false),
        ] {
            let result = Standbys::read(names, commit).demand(replicas);
            assert_eq!(result.is_ok(), is_enough, "{names} {commit} {replicas}");
        }
    }
}
