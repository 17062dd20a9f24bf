//! The calls of claims as calls of procedures.

use std::fmt::Write as _;

use super::protocol::arg::{Arg, Hex};
use super::protocol::call::Call as SqlCall;
use super::transport::server::Server;
use crate::backend::name::{self, TICKET};
use crate::backend::queue::protocol::call::{Bearer, millis};
use crate::backend::queue::protocol::kind::KindCode;
use crate::backend::sql::batch::{Batch, common};
use crate::backend::sql::names::Names;
use crate::backend::sql::steps::{Call, Inspect, PAGE, Page};
use crate::backend::token::Token;
use crate::types::key::LockKey;
use crate::types::overview::MOST_HOLDERS;

/// A procedure's name and its arguments.
pub(super) type Procedure = (&'static str, Vec<Arg>);

/// Calls procedures for the locks of one prefix.
#[derive(Debug)]
pub(super) struct Procedures {
    names: Names,
    /// The quarantine in milliseconds; zero for none.
    longest: i64,
    /// How many grants of each lock are remembered; zero for none.
    history: i64,
}

impl Procedures {
    pub(super) fn new(names: Names, longest: i64, history: i64) -> Self {
        // The procedures count in an `INT`.
        let history = history.min(i32::MAX.into());
        Self {
            names,
            longest,
            history,
        }
    }

    /// Whether each grant and each release is noted.
    pub(super) fn keep_history(&self) -> bool {
        self.history > 0
    }

    /// The procedure that also writes to the history, if one is kept.
    fn noted(&self, plain: &'static str, noted: &'static str, mut args: Vec<Arg>) -> Procedure {
        if !self.keep_history() {
            return (plain, args);
        }
        args.push(self.history.into());
        (noted, args)
    }

    /// Whether a server may have to grant nothing for a while.
    pub(super) fn have_quarantine(&self) -> bool {
        self.longest > 0
    }

    /// For how long nothing is granted.
    pub(super) fn quarantined(&self) -> Procedure {
        ("quarantined", vec![self.longest.into()])
    }

    /// Whether these locks are still held, and asked for.
    pub(super) fn standing(&self, bearers: &[Bearer]) -> Procedure {
        let mut calls = Vec::new();
        for bearer in bearers {
            self.put(bearer, 0, &mut calls);
        }
        ("standing", vec![calls.into()])
    }

    /// Deletes what nobody has used for long among the names behind this one.
    pub(super) fn sweep(after: &str, most: i64) -> Procedure {
        ("sweep", vec![after.into(), most.into()])
    }

    /// The call that carries out a batch; `None` if nothing is to be done.
    pub(super) fn call(&self, batch: &Batch, server: &Server) -> Option<SqlCall> {
        let timeout = batch.timeout();
        let (name, args) = match batch {
            Batch::One(sent) => match &sent.call {
                Call::Step(Inspect::Look(text)) => {
                    return Some(SqlCall::statement(&**text, timeout));
                }
                call => self.one(call, server)?,
            },
            Batch::Renewals(all) => {
                let bearers = all.iter().filter_map(|it| match &it.call {
                    Call::Renew { bearer, .. } => Some((bearer, ttl(bearer))),
                    _ => None,
                });
                self.renewal(bearers)
            }
            Batch::Many(all) => self.many(all.iter().map(|it| &it.call), server),
        };
        Some(SqlCall::procedure(name, &args, timeout))
    }

    fn one(&self, call: &Call, server: &Server) -> Option<Procedure> {
        Some(match call {
            Call::Acquire { bearer, .. } if bearer.terms.adopts.is_some() => self.adopt(bearer),
            Call::Acquire {
                bearer, position, ..
            } => self.acquire(bearer, *position, server),
            Call::Ask(bearers) => self.ask(bearers, server),
            Call::Leave(bearer) => {
                let name = self.names.name(&bearer.terms.key);
                self.release(&name, bearer.token, 0, true, server)
            }
            Call::Release {
                bearer, cooldown, ..
            } => {
                let name = self.names.name(&bearer.terms.key);
                self.release(
                    &name,
                    bearer.token,
                    signed(millis(*cooldown)),
                    false,
                    server,
                )
            }
            Call::Disown(grant) => self.release(&grant.owner, grant.token, 0, false, server),
            Call::Renew { bearer, .. } | Call::Raise { bearer, .. } => {
                self.renewal(std::iter::once((bearer, ttl(bearer))))
            }
            Call::Shorten { bearer, left } => {
                self.renewal(std::iter::once((bearer, signed(millis(*left)).max(1))))
            }
            Call::Issue {
                bearer,
                ticket,
                time,
            } => {
                let args = vec![
                    self.name(&bearer.terms.key),
                    bearer.token.into(),
                    name::of_ticket(*ticket, &bearer.name).into(),
                    signed(millis(*time)).max(1).into(),
                ];
                self.noted("issue", "issue_noted", args)
            }
            Call::Downgrade(bearer) => {
                let args = vec![
                    self.name(&bearer.terms.key),
                    bearer.token.into(),
                    server.session.token().into(),
                    self.longest.into(),
                ];
                self.noted("downgrade", "downgrade_noted", args)
            }
            Call::Step(step) => self.step(step, server)?,
            // No chains are formed where nobody is notified, and nobody asks holders here: the server knows since when they
            // hold a lock.
            Call::Pass { .. } | Call::Report { .. } => return None,
        })
    }

    fn acquire(&self, bearer: &Bearer, position: Option<u64>, server: &Server) -> Procedure {
        let terms = &bearer.terms;
        // A waiter that has a position had it before the queue was full.
        let most = terms.max_waiters.filter(|_| position.is_none());
        let most = most.map(|it| signed(it.into()).min(i32::MAX.into()));
        let args = vec![
            self.name(&terms.key),
            bearer.token.into(),
            who(bearer).into(),
            KindCode::of(terms).to_string().into(),
            ttl(bearer).into(),
            server.session.token().into(),
            (!terms.wait.is_try()).into(),
            position.map(signed).into(),
            most.into(),
            self.longest.into(),
        ];
        self.noted("acquire", "acquire_noted", args)
    }

    fn adopt(&self, bearer: &Bearer) -> Procedure {
        let terms = &bearer.terms;
        let ticket = terms.ticket().map(|it| format!("{TICKET}{it} "));
        let args = vec![
            self.name(&terms.key),
            bearer.token.into(),
            who(bearer).into(),
            KindCode::of(terms).to_string().into(),
            ttl(bearer).into(),
            ticket.unwrap_or_default().into(),
            self.longest.into(),
        ];
        self.noted("adopt", "adopt_noted", args)
    }

    fn ask(&self, bearers: &[Bearer], server: &Server) -> Procedure {
        let (mut tokens, mut ttls) = (Vec::new(), Vec::new());
        for bearer in bearers {
            tokens.extend(bearer.token.number().to_be_bytes());
            ttls.extend(four_bytes(ttl(bearer)));
        }
        let args = vec![
            self.name(&bearers[0].terms.key),
            tokens.into(),
            ttls.into(),
            server.session.token().into(),
            self.longest.into(),
        ];
        self.noted("ask", "ask_noted", args)
    }

    fn release(
        &self,
        name: &str,
        token: Token,
        rest: i64,
        leave: bool,
        server: &Server,
    ) -> Procedure {
        let args = vec![
            name.into(),
            token.into(),
            rest.into(),
            leave.into(),
            server.session.token().into(),
            self.longest.into(),
        ];
        self.noted("release", "release_noted", args)
    }

    fn renewal<'a>(&self, leases: impl Iterator<Item = (&'a Bearer, i64)>) -> Procedure {
        let mut calls = Vec::new();
        for (bearer, ttl) in leases {
            self.put(bearer, ttl, &mut calls);
        }
        ("renew", vec![calls.into()])
    }

    /// Writes name, token and ttl, as `renew` and its like read them.
    fn put(&self, bearer: &Bearer, ttl: i64, out: &mut Vec<u8>) {
        put_text(&self.names.name(&bearer.terms.key), out);
        out.extend(bearer.token.number().to_be_bytes());
        out.extend(four_bytes(ttl));
    }

    /// Two such batches do not wait for each other in a circle, as the calls are sorted by name.
    fn many<'a>(&self, calls: impl Iterator<Item = &'a Call>, server: &Server) -> Procedure {
        let mut all: Vec<_> = calls
            .zip(1_u16..)
            .filter_map(|(call, number)| {
                let bearer = common(call)?;
                Some((self.names.name(&bearer.terms.key), number, call, bearer))
            })
            .collect();
        all.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let mut out = String::new();
        let mut last = None;
        for (name, number, call, bearer) in all {
            let action = match call {
                Call::Acquire { .. } => 'x',
                _ => '-',
            };
            let comma = if last.is_some() { "," } else { "" };
            let first = u8::from(last.as_ref() != Some(&name));
            let (hex, token, ttl) = (Hex(name.as_bytes()), bearer.token.number(), ttl(bearer));
            let who = Hex(who(bearer).as_bytes());
            // Writing into a text does not fail.
            let _ = write!(
                out,
                r#"{comma}[{number},"{action}","{hex}","{token:032x}",{ttl},"{who}",{first}]"#
            );
            last = Some(name);
        }
        let args = vec![
            Arg::Json(format!("[{out}]")),
            server.session.token().into(),
            self.longest.into(),
        ];
        ("many", args)
    }

    fn step(&self, step: &Inspect, server: &Server) -> Option<Procedure> {
        let session = server.session.token();
        let most = i64::try_from(PAGE).unwrap_or(i64::MAX);
        Some(match step {
            Inspect::Status(key) => ("status", vec![self.name(key), session.into()]),
            Inspect::List(page) => ("list", page_args(page, [most])),
            Inspect::Overview(page) => {
                let named = i64::try_from(MOST_HOLDERS).unwrap_or(i64::MAX);
                ("overview", page_args(page, [most, named]))
            }
            Inspect::Ask(key) => ("ask_to_yield", vec![self.name(key)]),
            Inspect::ForceRelease(key) => {
                let args = vec![self.name(key), session.into(), self.longest.into()];
                ("force", args)
            }
            Inspect::History(key) => ("grants", vec![self.name(key)]),
            // A statement by itself.
            Inspect::Look(_) => return None,
        })
    }

    fn name(&self, key: &LockKey) -> Arg {
        Arg::from(&*self.names.name(key))
    }
}

fn page_args<const N: usize>(page: &Page, numbers: [i64; N]) -> Vec<Arg> {
    let texts = [like(&page.glob).into(), Arg::from(&*page.after)];
    texts.into_iter().chain(numbers.map(Arg::from)).collect()
}

/// A pattern that finds at least what the glob does: `_` would be one byte.
fn like(glob: &str) -> String {
    let mut pattern = String::new();
    for c in glob.chars() {
        match c {
            '*' | '?' => pattern.push('%'),
            '\\' | '%' | '_' => pattern.extend(['\\', c]),
            _ => pattern.push(c),
        }
    }
    pattern
}

/// Behind its length. Names have a limit, and so has what is in a batch.
fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend(text.as_bytes());
}

fn four_bytes(number: i64) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

fn ttl(bearer: &Bearer) -> i64 {
    // The procedures count in an `INT`.
    signed(millis(bearer.terms.ttl)).min(i32::MAX.into())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The name of an acquisition without its token.
fn who(bearer: &Bearer) -> &str {
    bearer.name.split_once(' ').map_or("", |(_, who)| who)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_finds_what_the_glob_does() {
        for (glob, pattern) in [("lock:{a*}", "lock:{a%}"), ("a?_%\\", "a%\\_\\%\\\\")] {
            assert_eq!(like(glob), pattern);
        }
    }
}
