//! Key templates: `"stock:{item.id}"`, split into text and placeholders.

use std::fmt;
use std::str::FromStr;

/// A template as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
}

/// Literal text, or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Value(Placeholder),
}

/// The text between braces, unchanged: `{expr:spec}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placeholder {
    pub(crate) expr: String,
    pub(crate) spec: String,
}

/// Why a text is not a template: one sentence that says what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    EmptyPlaceholder,
    Unclosed(String),
    Unopened,
    Parameter(String, char),
    NestedSpec(String),
}

impl Template {
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(placeholder) => Some(placeholder),
        })
    }
}

impl Placeholder {
    /// The name, if the placeholder is only a name that `format_args!` can read too.
    pub(crate) fn name(&self) -> Option<&str> {
        let mut chars = self.expr.chars();
        let starts = chars.next().is_some_and(|c| c == '_' || c.is_alphabetic());
        let is_name = starts && chars.all(|c| c == '_' || c.is_alphanumeric());
        let is_path = matches!(&*self.expr, "_" | "self" | "Self" | "super" | "crate");
        (is_name && !is_path).then_some(&self.expr)
    }

    /// Whether its format is that of `{}`, with or without width, fill and precision.
    pub(crate) fn is_displayed(&self) -> bool {
        let other = |c: char| c == '?' || c.is_alphabetic();
        !self.spec.trim_end().ends_with(other)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(source: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '{' | '}' if rest.starts_with(c) => {
                    rest = &rest[1..];
                    text.push(c);
                }
                '{' => {
                    if !text.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut text)));
                    }
                    let (placeholder, after) = placeholder(rest)?;
                    parts.push(Part::Value(placeholder));
                    rest = after;
                }
                '}' => return Err(TemplateError::Unopened),
                _ => text.push(c),
            }
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Template { parts })
    }
}

/// Reads `expr}` or `expr:spec}`; returns the placeholder and the text after it.
fn placeholder(source: &str) -> Result<(Placeholder, &str), TemplateError> {
    let end = expression_end(source)
        .ok_or_else(|| TemplateError::Unclosed(source.chars().take(20).collect()))?;
    let (expr, rest) = source.split_at(end);
    if expr.trim().is_empty() {
        return Err(TemplateError::EmptyPlaceholder);
    }
    let spec = match rest.strip_prefix(':') {
        None => "",
        Some(spec) => {
            let end = spec
                .find('}')
                .ok_or_else(|| TemplateError::Unclosed(source.chars().take(20).collect()))?;
            &spec[..end]
        }
    };
    let after = &rest[usize::from(rest.starts_with(':')) + spec.len() + 1..];
    let placeholder = Placeholder {
        expr: expr.to_owned(),
        spec: spec.to_owned(),
    };
    if let Some(parameter) = parameter(spec) {
        return Err(TemplateError::Parameter(placeholder.to_string(), parameter));
    }
    if spec.contains('{') {
        return Err(TemplateError::NestedSpec(placeholder.to_string()));
    }
    Ok((placeholder, after))
}

/// The `$` or `*` that names another argument, unless it fills, as in `*>8`.
fn parameter(spec: &str) -> Option<char> {
    let mut filled = spec.chars();
    filled.next();
    let filled = filled.as_str();
    let spec = if filled.starts_with(['<', '^', '>']) {
        filled
    } else {
        spec
    };
    spec.chars().find(|c| matches!(c, '$' | '*'))
}

/// The end of the expression: the first `}` or single `:` outside brackets and quotes.
fn expression_end(source: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut chars = source.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' | '\'' => {
                let quoted = quoted(&source[at..])?;
                while chars.next_if(|(next, _)| *next < at + quoted).is_some() {}
            }
            ':' if is_path(&source[at..]) => drop(chars.next()),
            '}' | ':' if depth == 0 => return Some(at),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Whether a path goes on here. In `{id::>8}`, the second colon fills.
fn is_path(source: &str) -> bool {
    let segment = source.strip_prefix("::");
    segment.is_some_and(|it| !it.starts_with(['>', '^']))
}

/// The size in bytes of the string or character literal at the start of `source`; `None` if it is
/// not closed. For a lifetime, the size of the quote.
fn quoted(source: &str) -> Option<usize> {
    let mut chars = source.char_indices();
    let quote = chars.next().map(|(_, c)| c);
    let mut escaped = false;
    for (count, (at, c)) in chars.enumerate() {
        match c {
            '\\' if !escaped => escaped = true,
            c if Some(c) == quote && !escaped => return Some(at + 1),
            _ if count == 1 && quote == Some('\'') && !source.starts_with("'\\") => {
                return source[1..].starts_with(is_letter).then_some(1);
            }
            _ => escaped = false,
        }
    }
    None
}

fn is_letter(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(&escape_braces(text)),
            Part::Value(placeholder) => placeholder.fmt(f),
        })
    }
}

/// Escapes literal braces, as in the templates of `format_args!`.
pub(crate) fn escape_braces(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.spec.is_empty() { "" } else { ":" };
        write!(f, "{{{}{colon}{}}}", self.expr, self.spec)
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyPlaceholder => write!(
                f,
                "`{{}}` names nothing: write the argument between the braces, as in `{{id}}`"
            ),
            Self::Unclosed(source) => write!(
                f,
                "`{{{source}` is never closed: add the `}}`, or write `{{{{` for a literal brace"
            ),
            Self::Unopened => write!(
                f,
                "this `}}` closes nothing: write `}}}}` for a literal brace"
            ),
            Self::Parameter(placeholder, parameter) => write!(
                f,
                "`{parameter}` in `{placeholder}` would take a width or precision from another argument, which keys do not support: write the number itself"
            ),
            Self::NestedSpec(placeholder) => write!(
                f,
                "the format of `{placeholder}` contains a brace: write only a format after the `:`, as in `{{id:08}}`"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
