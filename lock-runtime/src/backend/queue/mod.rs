//! Our side of the queues on a server: what the acquisitions of one connection wait for,
//! and what to send next. A state machine without I/O, for every store whose server grants
//! locks in the order in which they were asked for.

mod chains;
mod claim;
mod connection;
mod downgrading;
mod hand_over;
mod issuing;
mod messages;
pub(crate) mod order;
mod pace;
pub(crate) mod protocol;
pub(crate) mod quarantine;
mod replicas;
mod replies;
pub(crate) mod reports;
mod requests;
mod stages;
#[cfg(test)]
mod tests;
mod unclaimed;
mod waiters;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use crate::backend::Outcome;
use crate::backend::claims::Claims;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::base::numbers::Numbered;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

use chains::Chains;
use claim::{CLAIM_TTL, Claim, Stage};
use protocol::call::{Bearer, Call, Sent};
use protocol::step::Step;
use protocol::trouble::Trouble;
use quarantine::Quarantines;
use replicas::Replicas;
use reports::Listeners;
use unclaimed::Unclaimed;
use waiters::Waiters;

/// The pause before a refused call is sent again.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause before a forbidden release is sent again.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// Which of several connections the calls about a key go over.
pub(crate) fn connection_of(key: &LockKey, count: usize) -> usize {
    if count == 1 {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    usize::try_from(hasher.finish() % count as u64).unwrap_or(0)
}

/// What is to be known of a store whose claims a queue keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// Whether grants and renewals count only once [replicas](Queue::ask_replicas) have them.
    pub(crate) replicated: bool,
    /// Whether a pushed grant counts only once a reply confirms it.
    pub(crate) pushes_are_hints: bool,
    /// Whether the server has to know who of a chain holds the lock.
    pub(crate) passes: bool,
}

/// Everything that goes over one connection of the pool.
#[derive(Debug)]
pub(crate) struct Queue<S: Step> {
    claims: Claims<Claim>,
    /// Which claim has a token: by that replies and messages find it, since in a chain the
    /// token passes to another claim with the lock.
    ids: Numbered<Token, LeaseId>,
    waiters: Waiters,
    chains: Chains,
    /// Whose acquire was sent last.
    last_joined: Option<LeaseId>,
    /// Queries that await the reports of holders.
    listeners: Listeners,
    calls: Vec<Sent<S>>,
    /// The releases that no claim waits for.
    unclaimed: Unclaimed<S>,
    /// Why there is no connection, while there is none.
    down: Option<Trouble>,
    /// What replicas have to confirm, where they have to.
    replicas: Option<Replicas>,
    pushes_are_hints: bool,
    passes: bool,
    quarantines: Quarantines,
}

impl<S: Step> Queue<S> {
    /// Not connected yet.
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            claims: Claims::default(),
            ids: Numbered::default(),
            waiters: Waiters::default(),
            chains: Chains::default(),
            last_joined: None,
            listeners: Listeners::default(),
            calls: Vec::new(),
            unclaimed: Unclaimed::default(),
            down: Some(Trouble::not_now("not connected yet")),
            replicas: rules.replicated.then(Replicas::default),
            pushes_are_hints: rules.pushes_are_hints,
            passes: rules.passes,
            quarantines: Quarantines::default(),
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.is_some()
    }

    /// Whether somebody here waits for a lock.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// The locks that were granted before this moment and are still held.
    pub(crate) fn held_since(&self, before: Moment) -> Vec<Bearer> {
        let held =
            |claim: &Claim| matches!(claim.stage, Stage::Held { granted, .. } if granted <= before);
        let ids = self.claims.ids(held).into_iter();
        let claims = ids.filter_map(|id| self.claims.get(&id));
        claims.map(|claim| claim.bearer.clone()).collect()
    }

    /// Whether there is anything to do or to keep.
    pub(crate) fn is_empty(&self) -> bool {
        self.claims.len() == 0
    }

    /// Asks for the positions of all waiters at once.
    pub(crate) fn ask_waiters(&mut self, now: Moment) {
        self.waiters.ask_all(now, |_| true);
    }

    /// From now on, whether nobody notifies waiters.
    pub(crate) fn poll_waiters(&mut self, polled: bool) {
        self.waiters.polled = polled;
    }

    /// What to send now.
    pub(crate) fn calls(&mut self) -> Vec<Sent<S>> {
        std::mem::take(&mut self.calls)
    }

    /// Keeps some of that for the next time.
    #[cfg(feature = "postgres")]
    pub(crate) fn keep(&mut self, calls: Vec<Sent<S>>) {
        self.calls.splice(..0, calls);
    }

    /// Some calls among that.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn take_calls(&mut self, such: impl Fn(&Call<S>) -> bool) -> Vec<Sent<S>> {
        let calls = self.calls.extract_if(.., |it| such(&it.call));
        calls.collect()
    }

    /// The renewals among that, except for those that keep others waiting.
    #[cfg(feature = "mysql")]
    pub(crate) fn renewals(&mut self) -> Vec<Sent<S>> {
        let calls = std::mem::take(&mut self.calls).into_iter();
        let goes_first = |it: &Sent<S>| match &it.call {
            Call::Renew { bearer, .. } => {
                let claim = self.claim_of(bearer.token);
                !claim.is_some_and(Claim::was_refused)
            }
            _ => false,
        };
        let (renewals, others) = calls.partition(goes_first);
        self.calls = others;
        renewals
    }

    /// A connection has broken while the server was to carry out the renewals with these tokens, and may have waited for a
    /// row. First over the next connection, they would keep others waiting again. The driver repeats them.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn were_in_the_way(&mut self, tokens: Vec<Token>) {
        for token in tokens {
            let id = self.ids.get(&token).copied();
            if let Some(claim) = id.and_then(|id| self.claims.get_mut(&id)) {
                claim.renewal = claim::Renewal::Refused;
            }
        }
    }

    pub(crate) fn next_outcome(&mut self) -> Option<Outcome> {
        self.claims.next_outcome()
    }

    /// When [`tick`](Self::tick) will next have something to do.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        let retry = self.claims.next_wakeup();
        let ask = self.waiters.next_ask();
        let release = self.unclaimed.next_due();
        let up = [ask, release].map(|it| it.filter(|_| self.down.is_none()));
        let quarantine = self.quarantines.next_end();
        let all = up.into_iter().chain([retry, quarantine]);
        all.flatten().min()
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Moment) {
        self.end_quarantine(now);
        while let Some(id) = self.claims.due(now) {
            self.retry(now, id);
        }
        if self.down.is_none() {
            self.calls.extend(self.unclaimed.due(now));
            while let Some(bearers) = self.waiters.due(now) {
                self.ask(now, bearers);
            }
        }
    }

    /// Asks for their positions, unless nothing may come of that yet.
    fn ask(&mut self, now: Moment, bearers: Vec<Bearer>) {
        match self.quarantines.of(&bearers[0].terms.key) {
            Some(quarantine) => self.waiters.answered(&bearers, quarantine.ends),
            None => self.send(now, Call::Ask(bearers)),
        }
    }

    fn send_renewal(&mut self, at: Moment, bearer: Bearer) {
        let mut note = None;
        if let Some(claim) = self.claim(&bearer) {
            claim.renewals += 1;
            note = claim.note(at);
        }
        self.send(at, Call::Renew { bearer, note });
    }

    fn send(&mut self, at: Moment, call: Call<S>) {
        self.calls.push(Sent::new(call, at));
    }

    /// Sends a release under a token that no claim has.
    fn release_unclaimed(&mut self, now: Moment, call: Call<S>) {
        self.unclaimed.add(&call);
        self.send(now, call);
    }

    /// The claim that has a token.
    fn claim_of(&self, token: Token) -> Option<&Claim> {
        let id = self.ids.get(&token)?;
        self.claims.get(id)
    }

    /// The claim that has the token of a bearer.
    fn claim(&mut self, bearer: &Bearer) -> Option<&mut Claim> {
        let id = self.ids.get(&bearer.token)?;
        self.claims.get_mut(id)
    }

    /// The claim, if it still wants to know its position.
    fn asks(&mut self, bearer: &Bearer) -> Option<&mut Claim> {
        let claim = self.claim(bearer);
        claim.filter(|claim| matches!(claim.stage, Stage::Waiting | Stage::Unsure))
    }

    fn forget_token(&mut self, bearer: &Bearer) {
        self.waiters.leave(&bearer.terms.key, bearer.terms.id);
        self.ids.remove(&bearer.token);
    }
}
