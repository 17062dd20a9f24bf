//! The parts of a store's URL. Its errors never show a password.

use percent_encoding::percent_decode_str;

use crate::types::error::LockError;

const ENCODE: &str = "percent-encode what a user name or password contains beside letters, digits, `-`, `_`, `.` and \
     `~`: `%40` for `@`, `%2F` for `/`, `%3F` for `?`, `%23` for `#`, `%25` for `%`";

/// A URL; its parameters are taken out one by one.
pub(crate) struct Url {
    pub(crate) scheme: String,
    /// The part between the scheme and the parameters.
    pub(crate) place: String,
    parameters: Vec<(String, String)>,
    /// The requested ones.
    known: Vec<&'static str>,
    /// Whether a part of a password seems to be in the path or a parameter.
    cut: bool,
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, LockError> {
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| invalid("it must begin with a scheme, as in redis://127.0.0.1:6379"))?;
        if text.trim() != text {
            return Err(invalid(
                "it begins or ends with a space or a line break: take that out",
            ));
        }
        if rest.contains('#') {
            return Err(invalid(format_args!("it contains a `#`: {ENCODE}")));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut parameters = Vec::new();
        for parameter in query.split('&').filter(|text| !text.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            // As in forms.
            parameters.push((decode(name)?, decode(&value.replace('+', " "))?));
        }
        let authority = authority(place);
        let behind = rest.trim_start_matches('/').strip_prefix(authority);
        let cut = place.starts_with("//")
            && !authority.is_empty()
            && behind.is_some_and(|behind| behind.contains('@'));
        Ok(Self {
            scheme: scheme.to_owned(),
            place: place.to_owned(),
            parameters,
            known: Vec::new(),
            cut,
        })
    }

    /// Takes a parameter out.
    pub(crate) fn take(&mut self, name: &'static str) -> Result<Option<String>, LockError> {
        self.known.push(name);
        let mut values = self.parameters.extract_if(.., |(it, _)| it == name);
        let value = values.next().map(|(_, value)| value);
        if values.next().is_some() {
            return Err(LockError::invalid(name, "the URL names it twice"));
        }
        Ok(value)
    }

    /// Another name for a parameter, as in other libraries.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        for (name, _) in &mut self.parameters {
            if name == from {
                to.clone_into(name);
            }
        }
    }

    /// Whether parameters are left.
    pub(crate) fn has_parameters(&self) -> bool {
        !self.parameters.is_empty()
    }

    /// Refuses the remaining parameters.
    pub(crate) fn finish(self) -> Result<(), LockError> {
        let Some((name, _)) = self.parameters.first() else {
            return Ok(());
        };
        if self.cut {
            return Err(self.broken(""));
        }
        Err(invalid(format_args!(
            "it has no parameter `{name}`: those of `{}:` are {}",
            self.scheme,
            self.known.join(", ")
        )))
    }

    /// The part between `//` and the path, and the path without its `/`.
    pub(crate) fn authority_and_path(&self) -> Result<(&str, &str), LockError> {
        let rest = self.place.strip_prefix("//").ok_or_else(|| {
            invalid(format_args!(
                "it must begin with `{scheme}://`",
                scheme = self.scheme
            ))
        })?;
        Ok(rest.split_once('/').unwrap_or((rest, "")))
    }

    /// The error for a part that is `wrong`, which may be the end of a password.
    pub(crate) fn broken(&self, wrong: &str) -> LockError {
        if self.cut {
            invalid(format_args!(
                "a `/` or `?` seems to stand in the password: {ENCODE}"
            ))
        } else {
            invalid(wrong)
        }
    }
}

fn authority(place: &str) -> &str {
    let place = place.trim_start_matches('/');
    place.split('/').next().unwrap_or_default()
}

/// Decodes percent-encoding.
pub(crate) fn decode(text: &str) -> Result<String, LockError> {
    let encoded = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(encoded) {
        return Err(invalid(format_args!(
            "a `%` is not followed by two hexadecimal digits: {ENCODE}"
        )));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    let text = decoded.map_err(|_| invalid("what is percent-encoded in it is not UTF-8"))?;
    Ok(text.into_owned())
}

fn invalid(reason: impl std::fmt::Display) -> LockError {
    LockError::invalid("url", reason)
}

/// A URL was refused with these words, and without any part of the password `hunter2`.
#[cfg(test)]
pub(crate) fn refused<T: std::fmt::Debug>(read: Result<T, LockError>, says: &str) {
    let error = read.expect_err("it is refused");
    let text = format!("{error} {error:?}");
    assert!(
        text.starts_with("invalid url: ") && text.contains(says),
        "{text}"
    );
    assert!(!text.contains("hun") && !text.contains("ter2"), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_taken_once() {
        let mut url = Url::parse("memory:shop?ttl=1m+30s&wait=1m%2030s&prefix=").expect("a URL");
        assert_eq!((&*url.scheme, &*url.place), ("memory", "shop"));
        for (name, value) in [
            ("ttl", Some("1m 30s")),
            ("wait", Some("1m 30s")),
            ("prefix", Some("")),
            ("pool_size", None),
        ] {
            assert_eq!(url.take(name).expect("once").as_deref(), value);
        }
        url.finish().expect("all are taken");
    }

    #[test]
    fn a_parameter_that_nobody_takes_is_an_error_that_lists_the_others() {
        let mut url = Url::parse("memory:?tttl=1s").expect("a URL");
        assert!(url.take("ttl").expect("fine").is_none() && url.take("wait").is_ok());
        let text = url.finish().expect_err("unknown").to_string();
        assert!(
            text.contains("`tttl`") && text.contains("ttl, wait"),
            "{text}"
        );
    }

    #[test]
    fn a_parameter_that_is_there_twice_is_an_error() {
        let mut url = Url::parse("memory:?ttl=1s&ttl=2s").expect("a URL");
        let text = url.take("ttl").expect_err("twice").to_string();
        assert!(
            text.starts_with("invalid ttl: ") && text.contains("twice"),
            "{text}"
        );
    }
}
