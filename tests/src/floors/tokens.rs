//! Splits Rust into words and signs, without comments and literals.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// `::`
    Colons,
    Sign(char),
}

/// How far into a literal its quote is looked for: `br###"`.
const LONGEST_PREFIX: usize = 8;

/// The tokens, each with the number of its line.
pub(super) fn tokens(text: &str) -> Vec<(Token<'_>, usize)> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, size) = if let Some(size) = skipped(rest) {
            (None, size)
        } else if is_letter(first) {
            let size = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
            (Some(Token::Word(&rest[..size])), size)
        } else if rest.starts_with("::") {
            (Some(Token::Colons), 2)
        } else if first.is_whitespace() {
            (None, first.len_utf8())
        } else {
            (Some(Token::Sign(first)), first.len_utf8())
        };
        tokens.extend(token.map(|token| (token, line)));
        let (read, after) = rest.split_at(size);
        line += read.matches('\n').count();
        rest = after;
    }
    tokens
}

fn is_letter(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The size of the comment or literal that the text starts with.
fn skipped(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    let quote = text
        .bytes()
        .take(LONGEST_PREFIX)
        .position(|c| matches!(c, b'"' | b'\''))?;
    let (prefix, quoted) = text.split_at(quote);
    match prefix.trim_end_matches('#') {
        "r" | "br" | "cr" if quoted.starts_with('"') => {
            let hashes = prefix.len() - prefix.trim_end_matches('#').len();
            let end = format!("\"{}", "#".repeat(hashes));
            let size = quoted[1..].find(&end).map(|at| quote + 1 + at + end.len());
            Some(size.unwrap_or(text.len()))
        }
        "" | "b" | "c" if !prefix.contains('#') => {
            let size = if quoted.starts_with('"') {
                until_quote(quoted)
            } else {
                character(quoted)
            };
            Some(quote + size)
        }
        _ => None,
    }
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = text[at..]
        .find("/*")
        .into_iter()
        .chain(text[at..].find("*/"))
        .min()
    {
        at += found + 2;
        if text[..at].ends_with("/*") {
            depth += 1;
        } else {
            depth -= 1;
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The size of the literal between two of the quotes that the text starts with.
fn until_quote(text: &str) -> usize {
    let quote = text.chars().next();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if Some(c) == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The size of a character literal; of a lifetime, only of its quote.
fn character(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => until_quote(text),
        _ => 1,
    }
}
