//! How many words the documents have.

use std::iter::Sum;

/// How the tables begin that programs write: the results of benches and soaks, and the files of tests for each section.
const GENERATED: &[&str] = &[
    "| case | figure |",
    "| section | files |",
    "| store | profile |",
];

/// Words as `wc -w` counts them, the bars of tables among them.
#[derive(Debug, Default, PartialEq)]
pub struct Words {
    /// Those that people have written.
    pub written: usize,
    /// Those in tables that programs write.
    pub generated: usize,
}

impl Words {
    /// The words of a text in Markdown.
    pub fn of(text: &str) -> Self {
        let count = |paragraph: &str| {
            let words = paragraph.split_whitespace().count();
            let is_generated = GENERATED.iter().any(|it| paragraph.starts_with(it));
            let generated = if is_generated { words } else { 0 };
            Self {
                written: words - generated,
                generated,
            }
        };
        text.split("\n\n").map(count).sum()
    }
}

impl Sum for Words {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, it| Self {
            written: sum.written + it.written,
            generated: sum.generated + it.generated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn tables_that_programs_write_are_counted_apart() {
        let text = "# Some page\n\n| case | figure |\n|---|---|\n| a | 1 ms |\n\nThree more words.\n\n| word |\n";
        let expected = Words {
            written: 9,
            generated: 12,
        };
        assert_eq!(Words::of(text), expected);
    }
}
