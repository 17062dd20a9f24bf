//! The README: short enough to be read.

use crate::repository::read;

const LONGEST: usize = 900;

#[test]
fn the_readme_has_at_most_900_words() {
    let words = read("README.md").split_whitespace().count();
    assert!(words <= LONGEST, "{words} words");
}
