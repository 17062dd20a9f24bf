//! Finds the intended argument for a misspelt or foreign word.

/// Words of other locks, the corresponding argument here, and its form.
const OTHER_WORDS: &[(&[&str], &str, &str)] = &[
    (
        &["name", "id", "lock", "resource"],
        "key",
        "the lock's name is `key = \"stock:{id}\"`",
    ),
    (
        &[
            "lease",
            "lease_time",
            "expire",
            "expires",
            "expiry",
            "expiration",
            "duration",
        ],
        "ttl",
        "how long the lock outlives a holder that crashed is `ttl = \"10s\"`",
    ),
    (
        &[
            "timeout",
            "wait_time",
            "wait_timeout",
            "retry",
            "retries",
            "block",
        ],
        "wait",
        "how long to wait for a held lock is `wait = \"5s\"`",
    ),
    (
        &[
            "blocking", "try", "try_once", "try_lock", "nowait", "no_wait",
        ],
        "wait",
        "`wait = \"0s\"` tries once, and `wait = \"forever\"` waits for as long as it takes",
    ),
    (
        &["limit", "max", "concurrency", "semaphore"],
        "permits",
        "how many hold the lock at once is `permits = 4`",
    ),
    (
        &["read", "write", "shared", "exclusive"],
        "mode",
        "who shares the lock is `mode = \"read\"`, `\"write\"` or `\"exclusive\"`",
    ),
];

/// The argument that corresponds to a word of other locks, and the advice about it.
pub(crate) fn other_word(written: &str) -> Option<(&'static str, &'static str)> {
    let of = |(words, ..): &&(&[&str], _, _)| words.contains(&written);
    let (_, meant, advice) = OTHER_WORDS.iter().find(of)?;
    Some((meant, advice))
}

/// The name that has the same letters, or differs by at most a third of them.
pub(crate) fn similar<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let near = |name: &&str| {
        letters(name) == letters(written) || distance(written, name) <= name.len().div_ceil(3)
    };
    names
        .filter(near)
        .min_by_key(|name| distance(written, name))
}

/// The Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
