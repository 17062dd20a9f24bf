//! Finds the paths in one file: those of its `use` items, and those within its code.

use super::tokens::{Token, tokens};

/// The paths of a file, and the modules that it declares.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) paths: Vec<Written>,
    pub(super) modules: Vec<Declared>,
}

/// A path as it is written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) line: usize,
    /// The modules with braces around it, in this file.
    pub(super) within: Vec<String>,
    pub(super) segments: Vec<String>,
    pub(super) test: bool,
}

/// `mod name;`
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) test: bool,
}

pub(super) fn read(text: &str) -> Source {
    let mut reader = Reader {
        tokens: tokens(text),
        ..Reader::default()
    };
    while reader.at < reader.tokens.len() {
        reader.step();
    }
    reader.source
}

#[derive(Default)]
struct Reader<'a> {
    tokens: Vec<(Token<'a>, usize)>,
    at: usize,
    /// For each open brace, the name of the module that it opens.
    braces: Vec<Option<&'a str>>,
    /// Up to this token everything is for tests only.
    test_until: usize,
    source: Source,
}

impl<'a> Reader<'a> {
    fn step(&mut self) {
        match (self.token(0), self.token(1), self.token(2)) {
            (Some(Token::Sign('#')), Some(Token::Sign('[')), Some(Token::Word("cfg"))) => {
                self.condition();
            }
            (Some(Token::Word("mod")), Some(Token::Word(name)), Some(Token::Sign('{'))) => {
                self.braces.push(Some(name));
                self.at += 3;
            }
            (Some(Token::Word("mod")), Some(Token::Word(name)), Some(Token::Sign(';'))) => {
                let test = self.is_test();
                let name = name.to_owned();
                self.source.modules.push(Declared { name, test });
                self.at += 3;
            }
            (
                Some(Token::Word("use")),
                Some(Token::Word(_) | Token::Colons | Token::Sign('{')),
                _,
            ) => {
                self.at += 1;
                self.tree(&mut Vec::new());
            }
            // The module that a visibility names is not used.
            (Some(Token::Sign('(')), Some(Token::Word("in")), _) => {
                while self.token(0).is_some_and(|token| token != Token::Sign(')')) {
                    self.at += 1;
                }
            }
            (Some(Token::Word(_)), Some(Token::Colons), Some(Token::Word(_))) => self.path(),
            (Some(Token::Sign('{')), ..) => {
                self.braces.push(None);
                self.at += 1;
            }
            (Some(Token::Sign('}')), ..) => {
                self.braces.pop();
                self.at += 1;
            }
            _ => self.at += 1,
        }
    }

    fn token(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).map(|(token, _)| *token)
    }

    fn is_test(&self) -> bool {
        self.at < self.test_until
    }

    /// `#[cfg(…)]`: where it is about tests, so is the item after it.
    fn condition(&mut self) {
        let mut words = Vec::new();
        while let Some(token) = self.token(0).filter(|token| *token != Token::Sign(']')) {
            words.push(token);
            self.at += 1;
        }
        let has = |word| words.contains(&Token::Word(word));
        if has("test") && !has("not") {
            self.test_until = self.test_until.max(self.end_of_item());
        }
    }

    /// The token after the next item: its `;`, its closing brace, or the comma of a field.
    fn end_of_item(&self) -> usize {
        let mut depth = 0_usize;
        let mut angles = 0_usize;
        let mut before = None;
        // The first is the bracket that closes the attribute.
        for (at, (token, _)) in self.tokens.iter().enumerate().skip(self.at + 1) {
            match token {
                Token::Sign('}' | ';' | ',') if depth + angles == 0 => return at + 1,
                Token::Sign('}') if depth == 1 => return at + 1,
                Token::Sign('{' | '(' | '[') => depth += 1,
                Token::Sign('}' | ')' | ']') => depth = depth.saturating_sub(1),
                Token::Sign('<') if depth == 0 => angles += 1,
                Token::Sign('>') if depth == 0 && before != Some(Token::Sign('-')) => {
                    angles = angles.saturating_sub(1);
                }
                _ => {}
            }
            before = Some(*token);
        }
        self.tokens.len()
    }

    /// `a::b::C` in code.
    fn path(&mut self) {
        let before = self.at.checked_sub(1);
        let foreign = before.is_some_and(|before| self.tokens[before].0 == Token::Colons);
        let line = self.tokens[self.at].1;
        let mut segments = Vec::new();
        while let Some(Token::Word(word)) = self.token(0) {
            segments.push(word.to_owned());
            self.at += 1;
            if self.token(0) != Some(Token::Colons) {
                break;
            }
            self.at += 1;
        }
        if !foreign {
            self.found(line, segments);
        }
    }

    /// One tree of a `use` item, up to the sign that ends it: `a::{b::C, d as e, f::*}`.
    fn tree(&mut self, prefix: &mut Vec<String>) {
        let known = prefix.len();
        let mut line = 0;
        let mut group = false;
        while let Some((token, at)) = self.tokens.get(self.at).copied() {
            match token {
                // `::name`: of another crate.
                Token::Colons if prefix.is_empty() => prefix.push(String::new()),
                Token::Colons => {}
                Token::Word("as") => self.at += 1,
                Token::Word(word) => {
                    prefix.push(word.to_owned());
                    line = at;
                }
                Token::Sign('*') => line = at,
                Token::Sign('{') => {
                    group = true;
                    self.at += 1;
                    while self.token(0).is_some_and(|token| token != Token::Sign('}')) {
                        self.tree(prefix);
                        if self.token(0) != Some(Token::Sign('}')) {
                            self.at += 1;
                        }
                    }
                }
                Token::Sign(_) => break,
            }
            self.at += 1;
        }
        if !group && line > 0 {
            self.found(line, prefix.clone());
        }
        prefix.truncate(known);
    }

    fn found(&mut self, line: usize, segments: Vec<String>) {
        let within = self.braces.iter().flatten();
        self.source.paths.push(Written {
            line,
            within: within.map(ToString::to_string).collect(),
            segments,
            test: self.is_test(),
        });
    }
}
