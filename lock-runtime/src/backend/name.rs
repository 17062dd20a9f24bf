//! The name of an acquisition in a store: `token process@host function`, after a
//! `-` if the holder has released the lock and the lock cools down, and with a `=` and the id
//! of a ticket in place of the token while that keeps the lock closed. A candidate of an election
//! adds its data as a fourth word, escaped as in a URL. An acquisition under other locks names them in a
//! fifth word, `TOKEN:FENCE,TOKEN:FENCE`. A missing function before other words is `-`, missing data `%`.

use std::fmt::Write as _;
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::backend::token::Token;
use crate::types::enclosing::{HeldLock, MOST_ENCLOSING};
use crate::types::holder::{Holder, THIS_PROCESS};
use crate::types::terms::Terms;
use crate::types::ticket_id::TicketId;

/// What would end a word, and the mark of what is escaped.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// Stands for a function that is not known.
const NO_FUNCTION: &str = "-";

/// Stands for the data of an acquisition that publishes none. Escaped data is never this.
const NO_DATA: &str = "%";

/// The name under which this process takes a lock.
pub(crate) fn name(token: Token, terms: &Terms) -> String {
    let mut name = String::with_capacity(128);
    let (process, host) = (THIS_PROCESS.id, &THIS_PROCESS.host);
    // Writing into a text does not fail.
    let _ = write!(name, "{token} {process}@{host}");
    let nested = !terms.holds.is_empty();
    if terms.function.is_some() || terms.data.is_some() || nested {
        let _ = write!(name, " {}", terms.function.unwrap_or(NO_FUNCTION));
    }
    if let Some(data) = &terms.data {
        let _ = write!(name, " {}", utf8_percent_encode(data, ESCAPED));
    } else if nested {
        let _ = write!(name, " {NO_DATA}");
    }
    let mut mark = ' ';
    for lock in &terms.holds {
        let _ = write!(name, "{mark}{lock}");
        mark = ',';
    }
    name
}

/// What the name of a ticket begins with; its id stands in place of the token.
pub(crate) const TICKET: char = '=';

/// The name under which a ticket of this acquisition keeps its lock closed.
pub(crate) fn of_ticket(ticket: TicketId, name: &str) -> String {
    let who = name.split_once(' ').map_or("", |(_, who)| who);
    format!("{TICKET}{ticket} {who}")
}

/// Whether a name is that of this ticket.
#[cfg(feature = "etcd")]
pub(crate) fn is_of_ticket(ticket: TicketId, name: &str) -> bool {
    let id = name
        .strip_prefix(TICKET)
        .and_then(|it| it.split(' ').next());
    id == Some(&*ticket.to_string())
}

/// Who looks at a lock does not get the secret of its ticket.
fn shown(token: &str, ticket: bool) -> &str {
    let end = if ticket {
        token.len().min(8)
    } else {
        token.len()
    };
    token.get(..end).unwrap_or_default()
}

/// What a name says of its holder. The value of a foreign client is shown in full.
pub(crate) fn holder(name: &str, remaining: Option<Duration>) -> Holder {
    let marked = |mark| name.strip_prefix(mark);
    let (cooling_down, ticket) = (marked('-').is_some(), marked(TICKET).is_some());
    let name = marked('-').or(marked(TICKET)).unwrap_or(name);
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
        function: words.next().filter(|it| *it != NO_FUNCTION).map(Into::into),
        data: words.next().filter(|it| *it != NO_DATA).map(unescaped),
        holds: words.next().map(held).unwrap_or_default(),
        cooling_down,
        ticket,
        ..Holder::unknown(shown(token, ticket), remaining)
    }
}

fn held(locks: &str) -> Vec<HeldLock> {
    let locks = locks.split(',').take(MOST_ENCLOSING);
    locks.filter_map(HeldLock::parse).collect()
}

fn unescaped(data: &str) -> Box<str> {
    percent_decode_str(data).decode_utf8_lossy().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::enclosing::Enclosing;
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
    fn a_name_says_what_a_candidate_publishes() {
        let token = Token::new().expect("random numbers");
        for function in [Some("shop::lead"), None] {
            for data in ["", "-", "10.0.0.7:80", "100 % grün\n{\"a\": 1}"] {
                let terms = Terms {
                    function,
                    data: Some(data.into()),
                    ..Terms::of(LeaseId(1), "k", Duration::from_secs(1))
                };
                let name = name(token, &terms);
                assert!(name.is_ascii() && !name.contains('\n'), "{name}");
                assert_eq!(name.split(' ').count(), 4, "{name}");
                let holder = holder(&name, None);
                assert_eq!(holder.data.as_deref(), Some(data));
                assert_eq!(holder.function.as_deref(), function);
            }
        }
    }

    #[test]
    fn a_name_says_which_locks_its_caller_holds() {
        let token = Token::new().expect("random numbers");
        let lock = |token, fence| Enclosing { token, fence };
        for holds in [
            vec![],
            vec![lock(7, 1)],
            vec![lock(u128::MAX, 2), lock(0, 0)],
        ] {
            for function in [Some("shop::move"), None] {
                for data in [Some("-"), Some("%"), Some(""), None] {
                    let terms = Terms {
                        function,
                        data: data.map(Into::into),
                        holds: holds.clone().into(),
                        ..Terms::of(LeaseId(1), "k", Duration::from_secs(1))
                    };
                    let read = holder(&name(token, &terms), None);
                    assert_eq!(read.data.as_deref(), data);
                    assert_eq!(read.function.as_deref(), function);
                    let expected = holds.iter().map(|it| format!("{:032x}", it.token));
                    let ids = read.holds.iter().map(|it| it.id.to_string());
                    assert!(ids.eq(expected), "{read:?}");
                }
            }
        }
    }

    #[test]
    fn no_more_locks_are_read_than_a_caller_names() {
        let holds = ["7:1"; 1_000].join(",");
        let read = holder(&format!("7 1@host - % {holds}"), None);
        assert_eq!(read.holds.len(), MOST_ENCLOSING);
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
