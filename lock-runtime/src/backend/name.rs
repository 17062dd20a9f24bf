//! The name of an acquisition in a store: `token process@host function`, after a
//! `-` if the holder has released the lock and the lock cools down.

use std::fmt::Write as _;
use std::time::Duration;

use crate::backend::token::Token;
use crate::types::holder::{Holder, THIS_PROCESS};
use crate::types::terms::Terms;

/// The name under which this process takes a lock.
pub(crate) fn name(token: Token, terms: &Terms) -> String {
    let mut name = String::with_capacity(128);
    let (process, host) = (THIS_PROCESS.id, &THIS_PROCESS.host);
    // Writing into a text does not fail.
    let _ = write!(name, "{token} {process}@{host}");
    if let Some(function) = terms.function {
        let _ = write!(name, " {function}");
    }
    name
}

/// What a name says of its holder. The value of a foreign client is shown in full.
pub(crate) fn holder(name: &str, remaining: Option<Duration>) -> Holder {
    let (cooling_down, name) = match name.strip_prefix('-') {
        Some(name) => (true, name),
        None => (false, name),
    };
    let mut words = name.split(' ');
    let token = words.next().unwrap_or_default();
    let whereabouts = words.next().and_then(|word| word.split_once('@'));
    let whereabouts = whereabouts.and_then(|(process, host)| Some((process.parse().ok()?, host)));
    let Some((process, host)) = whereabouts else {
        return Holder::unknown(name, remaining);
    };
    Holder {
        process: Some(process),
        host: Some(host.into()),
        function: words.next().map(Into::into),
        cooling_down,
        ..Holder::unknown(token, remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::terms::LeaseId;

    #[test]
    fn a_name_says_who_where_and_what_for() {
        let token = Token::new().expect("random numbers");
        let terms = |function| Terms {
            function,
            ..Terms::of(LeaseId(1), "k", Duration::from_secs(1))
        };
        for (function, path) in [
            (Some("shop::stock::buy"), Some("shop::stock::buy")),
            (None, None),
        ] {
            let name = name(token, &terms(function));
            let read = holder(&name, None);
            assert_eq!(*read.id, *token.to_string());
            assert_eq!(read.process, Some(std::process::id()));
            assert_eq!(read.host.as_deref(), Some(&*THIS_PROCESS.host));
            assert_eq!(read.function.as_deref(), path);
            assert!(!read.cooling_down);

            let cooling = Holder {
                cooling_down: true,
                ..read
            };
            assert_eq!(holder(&format!("-{name}"), None), cooling);
        }
    }

    #[test]
    fn a_foreign_value_is_shown_whole() {
        for value in ["", "somebody", "me @ home", "-1 x", "a b@c d"] {
            let holder = holder(value, None);
            assert_eq!(*holder.id, *value.strip_prefix('-').unwrap_or(value));
            assert_eq!(holder.to_string(), "somebody else");
            assert!(!holder.cooling_down);
        }
    }
}
