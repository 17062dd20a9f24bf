//! Our side of the queues on the server: what the acquisitions of one connection wait
//! for, and what to send next. A state machine without I/O.

mod chains;
mod claim;
mod key_waiters;
mod messages;
pub(crate) mod order;
mod pace;
mod passing_on;
mod quarantine;
mod quarantined;
mod replicated;
mod replies;
pub(crate) mod reports;
mod requests;
#[cfg(test)]
mod tests;
mod unconfirmed;

use std::sync::Arc;
use std::time::Duration;

use crate::backend::Outcome;
use crate::backend::claims::{Claims, UNCONFIRMED};
use crate::backend::redis::protocol::call::{Call, Sent, Ticket};
use crate::backend::redis::protocol::line::Line;
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::protocol::reply::Trouble;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::base::numbers::Numbered;
use crate::types::deadline::deadline;
use crate::types::error::Cause;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

use chains::Chains;
use claim::{Claim, Stage};
use key_waiters::Waiters;
use quarantine::Quarantines;
use reports::Listeners;
use unconfirmed::Unconfirmed;

/// The longest lease of a pushed grant, as in `limits.lua`.
const CLAIM_TTL: Duration = Duration::from_secs(3);
/// The pause before a refused call is sent again.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause before a forbidden release is sent again.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// Everything that goes over one connection of the pool.
#[derive(Debug)]
pub(crate) struct Queue {
    claims: Claims<Claim>,
    /// Which claim has a token: by that replies and messages find it, since in a chain the
    /// token passes to another claim with the lock.
    ids: Numbered<Token, LeaseId>,
    waiters: Waiters,
    chains: Chains,
    /// Whose acquire was sent last.
    last_joined: Option<LeaseId>,
    /// Who wants to know what holders report.
    listeners: Listeners,
    calls: Vec<Sent>,
    /// Why there is no connection, while there is none.
    down: Option<Trouble>,
    /// What replicas have to confirm, where they have to.
    replicated: Option<Unconfirmed>,
    /// Whether a pushed grant counts only once a reply confirms it.
    pushes_are_hints: bool,
    /// What the servers may have forgotten.
    quarantines: Quarantines,
}

impl Queue {
    /// Not connected yet; `replicated` if grants and renewals count only once
    /// [replicas](Self::ask_replicas) have them.
    pub(crate) fn new(replicated: bool, layout: Layout) -> Self {
        Self {
            claims: Claims::default(),
            ids: Numbered::default(),
            waiters: Waiters::new(layout.is_polled()),
            chains: Chains::default(),
            last_joined: None,
            listeners: Listeners::default(),
            calls: Vec::new(),
            down: Some(Trouble::said("not connected yet")),
            replicated: replicated.then(Unconfirmed::default),
            pushes_are_hints: false,
            quarantines: Quarantines::default(),
        }
    }

    /// The same, where a link holds back replies until replicas have what they say: a
    /// pushed grant counts once a reply confirms it.
    pub(crate) fn with_replies_held_back(self, held_back: bool) -> Self {
        Self {
            pushes_are_hints: held_back,
            ..self
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.is_some()
    }

    /// What to send now.
    pub(crate) fn calls(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.calls)
    }

    pub(crate) fn next_outcome(&mut self) -> Option<Outcome> {
        self.claims.next_outcome()
    }

    /// When [`tick`](Self::tick) will next have something to do.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        let retry = self.claims.next_wakeup();
        let ask = self.waiters.next_ask().filter(|_| self.down.is_none());
        let quarantine = self.quarantines.next_end();
        [retry, ask, quarantine].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Moment) {
        self.end_quarantine(now);
        while let Some(id) = self.claims.due(now) {
            self.retry(now, id);
        }
        if self.down.is_none() {
            while let Some(tickets) = self.waiters.due(now) {
                self.ask(now, tickets);
            }
        }
    }

    /// Asks for their positions, unless nothing may come of that yet.
    fn ask(&mut self, now: Moment, tickets: Vec<Ticket>) {
        match self.quarantines.of(&tickets[0].terms.key) {
            Some(quarantine) => self.waiters.answered(&tickets, quarantine.ends),
            None => self.send(now, Call::Ask(tickets)),
        }
    }

    /// The connection is open and subscribed: unsure claims ask at once.
    pub(crate) fn connected(&mut self, now: Moment) {
        self.down = None;
        self.claims.tokens.forget();
        self.resume(now, |_| true);
        self.tell_of_quarantine();
    }

    /// The server of these locks can be reached again, or another one has them now.
    pub(crate) fn resume(&mut self, now: Moment, concerns: impl Fn(&LockKey) -> bool) {
        self.waiters.ask_all(now, &concerns);
        for id in self.claims.ids(|claim| concerns(&claim.ticket.terms.key)) {
            self.retry(now, id);
        }
    }

    /// The connection is gone, or could not be made. The calls in flight have
    /// been [`replied`](Self::replied) before.
    pub(crate) fn disconnected(&mut self, trouble: Trouble) {
        self.replicas_gone(&trouble);
        self.interrupt(&trouble, |_| true);
        self.listeners.end(&trouble);
        self.down = Some(trouble);
    }

    /// The server of these locks cannot be reached.
    pub(crate) fn interrupt(&mut self, trouble: &Trouble, concerns: impl Fn(&LockKey) -> bool) {
        // Nobody enters a lock of which the server may not have heard for long. They are sent
        // when it can be reached again.
        for chain in self.chains.of(&concerns) {
            let at = self.ids.get(&chain).and_then(|id| self.claims.get(id));
            if let Some(at) = at.map(|claim| claim.since) {
                self.break_up(at, chain);
            }
        }
        for id in self.claims.ids(|claim| concerns(&claim.ticket.terms.key)) {
            let Some(claim) = self.claims.get_mut(&id) else {
                continue;
            };
            // Others may be granted the lock before it is found again.
            claim.fence = None;
            if claim.stage == Stage::Waiting {
                claim.stage = Stage::Unsure;
            }
            if matches!(claim.stage, Stage::Unsent | Stage::Unsure) {
                self.trouble(id, trouble);
            }
        }
    }

    /// Sends what the stage of a claim asks for.
    fn retry(&mut self, now: Moment, id: LeaseId) {
        let company = self.company(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let forbidden = claim.forbidden;
        if forbidden.is_some_and(|until| now >= until) {
            return self.forget(id);
        }
        let quarantine = self.quarantines.of(&claim.ticket.terms.key);
        let (call, until) = match claim.stage {
            Stage::Unsent if self.down.is_none() && quarantine.is_none() => {
                claim.stage = Stage::Acquiring;
                claim.since = now;
                self.last_joined = Some(id);
                let call = Call::Acquire {
                    ticket: claim.ticket.clone(),
                    place: claim.position,
                    company,
                };
                (call, None)
            }
            Stage::Leaving { until } => {
                if let Some(quarantine) = quarantine {
                    self.claims.schedule(quarantine.ends, id);
                    let result = Ok(false);
                    return self.claims.report(Outcome::Released { id, result });
                }
                let call = Call::Leave(claim.ticket.clone());
                if now >= until {
                    let result = Err(self.unconfirmed());
                    self.claims.report(Outcome::Released { id, result });
                }
                (call, Some(until))
            }
            Stage::Releasing { until, .. } if now >= until => {
                let cause = self.unconfirmed();
                return self.released(id, Err(cause));
            }
            Stage::Releasing { until, cools_until } => {
                let (ticket, rest) = (claim.ticket.clone(), cools_until.since(now));
                let call = match quarantine {
                    Some(_) => Call::Shorten { ticket, left: rest },
                    None => Call::Release {
                        ticket,
                        rest,
                        crowded: claim.crowded,
                    },
                };
                (call, Some(until))
            }
            _ => return,
        };
        if self.down.is_none() {
            return self.send(now, call);
        }
        for end in [until, forbidden].into_iter().flatten() {
            if now < end {
                self.claims.schedule(end, id);
            }
        }
    }

    /// Reports a grant at once, or renews it first if little is left of its lease.
    fn enter(&mut self, now: Moment, id: LeaseId, fence: u64, since: Moment, ttl: Duration) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        self.waiters.leave(&claim.ticket.terms.key, id);
        if deadline(since, ttl).since(now) >= ttl / 2 {
            self.granted(now, id, fence, since, ttl);
        } else {
            self.confirm(now, id, fence);
        }
    }

    /// A renewal is to show that the lock is ours.
    fn confirm(&mut self, now: Moment, id: LeaseId, fence: u64) {
        if let Some(claim) = self.claims.get_mut(&id) {
            self.waiters.leave(&claim.ticket.terms.key, id);
            claim.stage = Stage::Confirming { fence };
            self.renew_for_now(now, id);
        }
    }

    /// The lock is ours, unless replicas have to confirm that first.
    fn granted(&mut self, now: Moment, id: LeaseId, fence: u64, since: Moment, ttl: Duration) {
        match self.claims.get_mut(&id) {
            Some(claim) if self.replicated.is_some() => {
                claim.stage = Stage::Replicating { fence };
                let ticket = claim.ticket.clone();
                self.await_replicas(ticket, since, ttl);
            }
            _ => self.hold(now, id, fence, since, ttl),
        }
    }

    /// The lock is ours for `ttl` from `since`.
    fn hold(&mut self, now: Moment, id: LeaseId, fence: u64, since: Moment, ttl: Duration) {
        if let Some(claim) = self.claims.get_mut(&id) {
            let granted = now;
            claim.stage = Stage::Held { fence, granted };
            claim.lease = (since, ttl);
            self.claims.report(Outcome::Granted {
                id,
                fence,
                since,
                ttl,
            });
        }
    }

    /// It is held for `ttl` from `since`.
    fn renewed(&mut self, id: LeaseId, since: Moment, ttl: Duration) {
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.lease = (since, ttl);
        }
        self.claims.report(Outcome::Renewed { id, since, ttl });
    }

    /// It was held, and is not ours any more.
    fn lost(&mut self, now: Moment, id: LeaseId) {
        self.claims.report(Outcome::NotHeld { id });
        if let Some(claim) = self.claims.get(&id) {
            self.lose_chain(now, claim.ticket.token);
        }
    }

    /// The token is of no use any more. A fresh one takes its position in the queue.
    fn start_over(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let (old, is_part) = (claim.ticket.token, claim.is_part);
        let token = if is_part {
            Ok(old.sibling())
        } else {
            self.claims.tokens.next()
        };
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Ok(token) = token else {
            if matches!(claim.stage, Stage::Chained { .. }) {
                // It learns that it is gone when it asks.
                let ticket = claim.ticket.clone();
                self.unsure(&ticket, now.after(PAUSE));
            }
            self.claims.schedule(now.after(PAUSE), id);
            return;
        };
        self.waiters.leave(&claim.ticket.terms.key, id);
        self.ids.remove(&old);
        self.ids.insert(token, id);
        claim.ticket = Ticket::new(token, Arc::clone(&claim.ticket.terms));
        claim.stage = Stage::Unsent;
        claim.fence = None;
        claim.renewals = 0;
        self.lose_chain(now, old);
    }

    /// Something is in the way of an acquisition, for now or for good.
    fn trouble(&mut self, id: LeaseId, trouble: &Trouble) {
        let cause = trouble.cause();
        if !matches!(trouble, Trouble::Never(_)) {
            let soon = matches!(trouble, Trouble::Unknown(_));
            let outcome = Outcome::Trouble { id, cause, soon };
            self.claims.report(outcome);
            return;
        }
        let failed = Outcome::Failed { id, cause };
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if claim.stage == Stage::Unsent {
            return self.retire(failed);
        }
        // It may be in the queue all the same.
        self.waiters.leave(&claim.ticket.terms.key, id);
        let (chain, at) = (claim.ticket.token, claim.since);
        claim.leave(at);
        let call = Call::Leave(claim.ticket.clone());
        if self.down.is_none() {
            self.calls.push(Sent::new(call, at));
        }
        self.claims.report(failed);
        self.lose_chain(at, chain);
    }

    fn waits(&mut self, id: LeaseId, line: &Line) {
        let holder = Some(Box::new(line.holder()));
        self.claims.report(Outcome::Waiting { id, holder });
    }

    fn send_renewal(&mut self, at: Moment, ticket: Ticket) {
        if let Some(claim) = self.claim(&ticket) {
            claim.renewals += 1;
        }
        self.send(at, Call::Renew(ticket));
    }

    fn send(&mut self, at: Moment, call: Call) {
        self.calls.push(Sent::new(call, at));
    }

    /// The claim that has the token of a ticket.
    fn claim(&mut self, ticket: &Ticket) -> Option<&mut Claim> {
        let id = self.ids.get(&ticket.token)?;
        self.claims.get_mut(id)
    }

    /// The claim, if it still wants to know its position.
    fn asks(&mut self, ticket: &Ticket) -> Option<&mut Claim> {
        let claim = self.claim(ticket);
        claim.filter(|claim| matches!(claim.stage, Stage::Waiting | Stage::Unsure))
    }

    /// Why a release has no answer.
    fn unconfirmed(&self) -> Cause {
        let said = || Trouble::said(UNCONFIRMED);
        self.down.clone().unwrap_or_else(said).cause()
    }

    /// It is not ours any more, or never was; whether it was until now.
    fn released(&mut self, id: LeaseId, result: Result<bool, Cause>) {
        self.retire(Outcome::Released { id, result });
    }

    /// Forgets a claim that ends with this outcome.
    fn retire(&mut self, outcome: Outcome) {
        if let Some(claim) = self.claims.retire(outcome) {
            self.forget_token(&claim.ticket);
        }
    }

    fn forget(&mut self, id: LeaseId) {
        if let Some(claim) = self.claims.remove(&id) {
            self.forget_token(&claim.ticket);
        }
    }

    fn forget_token(&mut self, ticket: &Ticket) {
        self.waiters.leave(&ticket.terms.key, ticket.terms.id);
        self.ids.remove(&ticket.token);
    }
}
