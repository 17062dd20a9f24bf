//! Calls to the server, as values.

use std::sync::Arc;
use std::time::Duration;

use super::message::Grant;
use super::step::{AskedBy, Step};
use crate::backend::name;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::key::LockKey;
use crate::types::terms::Terms;
use crate::types::ticket_id::TicketId;

/// The longest time limit of a call.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// An acquisition that bears a token, which changes if it has to start over.
#[derive(Clone, Debug)]
pub(crate) struct Bearer {
    pub(crate) terms: Arc<Terms>,
    pub(crate) token: Token,
    /// The name on the server, which begins with the token.
    pub(crate) name: Arc<str>,
}

impl Bearer {
    pub(crate) fn new(token: Token, terms: Arc<Terms>) -> Self {
        let name = name::name(token, &terms).into();
        Self { terms, token, name }
    }

    /// The same, for a lease that is no longer than this.
    pub(crate) fn at_most(&self, longest: Duration) -> Self {
        let mut bearer = self.clone();
        if self.terms.ttl > longest {
            Arc::make_mut(&mut bearer.terms).ttl = longest;
        }
        bearer
    }
}

/// What an acquisition says of others of its connection that want the same lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// Nothing.
    Unsaid,
    /// There are more, and they may be granted the lock together.
    More,
    /// It is to be granted alone.
    Alone,
}

/// What a renewal tells about its grant, for queries while the holder does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) fence: u64,
    pub(crate) held: Duration,
}

/// One call to the server.
#[derive(Clone, Debug)]
pub(crate) enum Call<S> {
    /// Joins the queue, or adopts the ticket of its terms.
    Acquire {
        bearer: Bearer,
        /// The position in the queue that an earlier token of the same waiter had.
        position: Option<u64>,
        company: Company,
    },
    /// All bearers are of one key.
    Ask(Vec<Bearer>),
    Leave(Bearer),
    Renew {
        bearer: Bearer,
        note: Option<Note>,
    },
    /// Lets a writer go on as a reader.
    Downgrade(Bearer),
    /// In a chain, it holds the lock under this fence from now on.
    Pass {
        bearer: Bearer,
        fence: u64,
    },
    /// Renews, and lets the counter of acquisitions be no smaller than this.
    Raise {
        bearer: Bearer,
        fence: u64,
    },
    Release {
        bearer: Bearer,
        /// For how long nobody gets the lock.
        cooldown: Duration,
        /// Whether others are likely to wait for it.
        crowded: bool,
        /// Whether a renewal has noted its grant.
        noted: bool,
    },
    /// Lets a ticket keep the lock closed for this time.
    Issue {
        bearer: Bearer,
        ticket: TicketId,
        time: Duration,
    },
    /// Ends a lease after this time, and hands nothing over.
    Shorten {
        bearer: Bearer,
        left: Duration,
    },
    /// Releases a grant that nobody here knows.
    Disown(Grant),
    /// A call of the store's own.
    Step(S),
    /// Tells a connection about a lock that is held here.
    Report {
        channel: Box<str>,
        token: Token,
        fence: u64,
        held: Duration,
        /// How many it is to be handed over to.
        followers: usize,
        /// The names of those among them that hold other locks.
        nested: Box<[Box<str>]>,
    },
}

/// A call and the moment before it was sent.
#[derive(Debug)]
pub(crate) struct Sent<S: Step> {
    pub(crate) call: Call<S>,
    pub(crate) at: Moment,
    /// The query that awaits the reply, if one does.
    pub(crate) by: Option<AskedBy<S>>,
    pub(crate) route: S::Route,
}

impl<S: Step> Sent<S> {
    pub(crate) fn new(call: Call<S>, at: Moment) -> Self {
        Self {
            call,
            at,
            by: None,
            route: S::Route::default(),
        }
    }

    /// A step of a query that awaits the reply.
    pub(crate) fn step(step: S, by: AskedBy<S>, at: Moment) -> Self {
        Self {
            by: Some(by),
            ..Self::new(Call::Step(step), at)
        }
    }
}

impl<S: Step> Call<S> {
    /// Whether it is likely to hand the lock over.
    pub(crate) fn hands_over(&self) -> bool {
        matches!(self, Self::Release { crowded: true, .. })
    }

    /// How long its answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        match self {
            Self::Acquire { bearer, .. }
            | Self::Leave(bearer)
            | Self::Downgrade(bearer)
            | Self::Renew { bearer, .. }
            | Self::Pass { bearer, .. }
            | Self::Raise { bearer, .. }
            | Self::Shorten { bearer, .. }
            | Self::Issue { bearer, .. }
            | Self::Release { bearer, .. } => bearer.terms.call_timeout(),
            Self::Ask(bearers) => {
                let timeouts = bearers.iter().map(|bearer| bearer.terms.call_timeout());
                timeouts.min().unwrap_or(LONGEST)
            }
            Self::Disown(_) | Self::Step(_) | Self::Report { .. } => LONGEST,
        }
    }

    /// The lock that it is about.
    pub(crate) fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Acquire { bearer, .. }
            | Self::Leave(bearer)
            | Self::Downgrade(bearer)
            | Self::Renew { bearer, .. }
            | Self::Pass { bearer, .. }
            | Self::Raise { bearer, .. }
            | Self::Shorten { bearer, .. }
            | Self::Issue { bearer, .. }
            | Self::Release { bearer, .. } => Some(&bearer.terms.key),
            Self::Ask(bearers) => bearers.first().map(|bearer| &bearer.terms.key),
            Self::Step(step) => step.key(),
            Self::Disown(_) | Self::Report { .. } => None,
        }
    }
}

/// Rounded up: a cooldown of less than a millisecond lasts one.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// What an acquire says of others of its connection, behind its kind.
pub(crate) fn mark(company: Company) -> &'static str {
    match company {
        Company::Unsaid => "",
        Company::More => "+",
        Company::Alone => "-",
    }
}
