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
use crate::types::ticket::TicketId;

/// An acquisition with its current token, which changes if it has to start over.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) terms: Arc<Terms>,
    pub(crate) token: Token,
    /// The name on the server, which begins with the token.
    pub(crate) name: Arc<str>,
}

impl Ticket {
    pub(crate) fn new(token: Token, terms: Arc<Terms>) -> Self {
        let name = name::name(token, &terms).into();
        Self { terms, token, name }
    }

    /// The same, for a lease that is no longer than this.
    pub(crate) fn at_most(&self, longest: Duration) -> Self {
        let mut ticket = self.clone();
        if self.terms.ttl > longest {
            Arc::make_mut(&mut ticket.terms).ttl = longest;
        }
        ticket
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

/// One call to the server.
#[derive(Clone, Debug)]
pub(crate) enum Call<S> {
    /// Joins the queue, or adopts the ticket of its terms.
    Acquire {
        ticket: Ticket,
        /// The position in the queue that an earlier token of the same waiter had.
        position: Option<u64>,
        company: Company,
    },
    /// All tickets are of one key.
    Ask(Vec<Ticket>),
    Leave(Ticket),
    Renew(Ticket),
    /// In a chain, it holds the lock under this fence from now on.
    Pass {
        ticket: Ticket,
        fence: u64,
    },
    /// Renews, and lets the counter of acquisitions be no smaller than this.
    Raise {
        ticket: Ticket,
        fence: u64,
    },
    Release {
        ticket: Ticket,
        /// For how long nobody gets the lock.
        cooldown: Duration,
        /// Whether others are likely to wait for it.
        crowded: bool,
    },
    /// Lets a ticket keep the lock closed for this time.
    Issue {
        ticket: Ticket,
        issued: TicketId,
        time: Duration,
    },
    /// Ends a lease after this time, and hands nothing over.
    Shorten {
        ticket: Ticket,
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
        const LONGEST: Duration = Duration::from_secs(1);
        match self {
            Self::Acquire { ticket, .. }
            | Self::Leave(ticket)
            | Self::Renew(ticket)
            | Self::Pass { ticket, .. }
            | Self::Raise { ticket, .. }
            | Self::Shorten { ticket, .. }
            | Self::Issue { ticket, .. }
            | Self::Release { ticket, .. } => ticket.terms.call_timeout(),
            Self::Ask(tickets) => {
                let timeouts = tickets.iter().map(|ticket| ticket.terms.call_timeout());
                timeouts.min().unwrap_or(LONGEST)
            }
            Self::Disown(_) | Self::Step(_) | Self::Report { .. } => LONGEST,
        }
    }

    /// The lock that it is about.
    pub(crate) fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Acquire { ticket, .. }
            | Self::Leave(ticket)
            | Self::Renew(ticket)
            | Self::Pass { ticket, .. }
            | Self::Raise { ticket, .. }
            | Self::Shorten { ticket, .. }
            | Self::Issue { ticket, .. }
            | Self::Release { ticket, .. } => Some(&ticket.terms.key),
            Self::Ask(tickets) => tickets.first().map(|ticket| &ticket.terms.key),
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
