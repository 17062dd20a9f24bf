//! Finds the name that a misspelt one was meant to be.

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
