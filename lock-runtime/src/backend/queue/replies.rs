//! What each reply of the server means for its claim.

use std::time::Duration;

use super::claim::Stage;
use super::protocol::call::{Bearer, Call, Sent};
use super::protocol::reply::{Reply, Standing};
use super::protocol::step::{AskedBy, Step};
use super::protocol::trouble::Trouble;
use super::replicas::{Replicas, Unconfirmed};
use super::{CLAIM_TTL, LONG_PAUSE, PAUSE, Queue};
use crate::backend::Outcome;
use crate::base::clock::Moment;
use crate::types::deadline::deadline;
use crate::types::error::Cause;
use crate::types::key::LockKey;

impl<S: Step> Queue<S> {
    /// A call is to be sent to another node, perhaps behind later ones. Returns whether anybody still wants that: an
    /// acquisition that was given up would leave its position there.
    pub(crate) fn redirected(&self, now: Moment, call: &mut Call<S>) -> bool {
        match call {
            Call::Acquire { bearer, .. } => {
                let claim = self.claim_of(bearer.token);
                claim.is_some_and(|it| !it.ends())
            }
            Call::Renew { bearer, .. } => {
                let renewals = self.claim_of(bearer.token).map_or(0, |it| it.renewals);
                *bearer = self.renews_again(now, bearer, renewals.saturating_sub(1));
                true
            }
            _ => true,
        }
    }

    /// The answer to a call.
    pub(crate) fn replied(
        &mut self,
        now: Moment,
        sent: Sent<S>,
        result: Result<Reply<S>, Trouble>,
    ) {
        let Sent { call, at, by, .. } = sent;
        // In a chain, the token may be another claim's by now.
        if let Some(bearer) = self.unclaimed.released(&call)
            && !self.ids.contains_key(&bearer.token)
        {
            let bearer = bearer.clone();
            return self.unclaimed_replied(now, at, &bearer, call, &result);
        }
        match call {
            Call::Acquire { bearer, .. } => self.acquire_replied(now, at, &bearer, result),
            Call::Ask(bearers) => self.ask_replied(now, at, bearers, result),
            Call::Renew { bearer, .. } => self.renew_replied(now, at, &bearer, result),
            Call::Pass { bearer, fence } => self.pass_replied(now, &bearer, fence, result),
            Call::Raise { bearer, fence } => self.raise_replied(now, at, bearer, fence, result),
            Call::Downgrade(bearer) => self.downgrade_replied(now, &bearer, result),
            Call::Issue { bearer, .. } => self.issue_replied(now, &bearer, result),
            Call::Leave(bearer) | Call::Release { bearer, .. } | Call::Shorten { bearer, .. } => {
                self.release_replied(now, &bearer, result);
            }
            Call::Step(_) => step_replied(by, result),
            // A grant that stays on the server ends with its ttl, and whoever asked
            // about a lock does not wait for long.
            Call::Disown(_) | Call::Report { .. } => {}
        }
    }

    fn acquire_replied(
        &mut self,
        now: Moment,
        at: Moment,
        bearer: &Bearer,
        result: Result<Reply<S>, Trouble>,
    ) {
        // It may have another token by now, and its token may be another one's.
        if let Ok(Reply::Waiting { position, .. }) = &result
            && let Some(claim) = self.claims.get_mut(&bearer.terms.id)
        {
            claim.position.get_or_insert(*position);
            claim.waited = true;
        }
        let Some(claim) = self.claim(bearer) else {
            // It was given up, and redirected to another node behind its leave.
            if let Ok(Reply::Granted { .. }) = result {
                self.release_unclaimed(now, Call::Leave(bearer.clone()));
            }
            return;
        };
        if claim.stage != Stage::Acquiring {
            return;
        }
        let id = bearer.terms.id;
        match result {
            Ok(Reply::Granted { fence }) => self.enter(now, id, fence, at, bearer.terms.ttl),
            Ok(Reply::Waiting { ahead, .. }) => {
                claim.stage = Stage::Waiting;
                self.waiters.join(bearer, now, &ahead);
                self.waits(id, &ahead);
            }
            // A try does not ask how it stands.
            Ok(Reply::Taken { left }) => {
                claim.stage = Stage::Unsure;
                claim.takes_over = true;
                self.claims.schedule(now.after(left), id);
            }
            // Somebody relies on the fence of the former holder.
            Ok(Reply::Busy { ahead }) if bearer.terms.adopts.is_some() => {
                self.unsure(bearer, now.after(PAUSE));
                self.waits(id, &ahead);
            }
            // It was sent before the client heard that it had been in the queue: it is sent again, without the limit.
            Ok(Reply::Busy { ahead }) if !claim.waited || bearer.terms.max_waiters.is_none() => {
                let holder = Some(Box::new(ahead.holder()));
                self.retire(Outcome::Busy { id, holder });
            }
            Ok(Reply::NoTicket) => self.retire(Outcome::NoTicket { id }),
            Ok(_) => {
                self.start_over(now, id);
                self.claims.schedule(now.after(PAUSE), id);
            }
            Err(Trouble::NotRun) => {
                claim.stage = if claim.takes_over {
                    Stage::Unsure
                } else {
                    Stage::Unsent
                };
                self.retry(now, id);
            }
            Err(trouble) => {
                self.unsure(bearer, now.after(PAUSE));
                self.trouble(id, &trouble);
            }
        }
    }

    fn ask_replied(
        &mut self,
        now: Moment,
        at: Moment,
        bearers: Vec<Bearer>,
        result: Result<Reply<S>, Trouble>,
    ) {
        let (ahead, standings) = match result {
            Ok(Reply::Asked { ahead, standings }) => (ahead, standings),
            Ok(_) | Err(Trouble::NotRun) => {
                self.waiters.answered(&bearers, now);
                return;
            }
            Err(trouble) => {
                self.waiters.answered(&bearers, now.after(PAUSE));
                for bearer in bearers {
                    if let Some(claim) = self.asks(&bearer) {
                        claim.stage = Stage::Unsure;
                        let id = claim.bearer.terms.id;
                        self.trouble(id, &trouble);
                    }
                }
                return;
            }
        };
        if let Some(first) = bearers.first() {
            let at = self.waiters.next(&first.terms.key, now, &ahead);
            self.waiters.answered(&bearers, at);
        }
        for (bearer, standing) in bearers.into_iter().zip(standings) {
            // It may have another token by now: the node that had the lock may answer after the one that has it.
            if !matches!(standing, Standing::Gone)
                && let Some(claim) = self.claims.get_mut(&bearer.terms.id)
            {
                claim.waited = true;
            }
            let Some(claim) = self.asks(&bearer) else {
                continue;
            };
            let id = claim.bearer.terms.id;
            match standing {
                Standing::Granted { fence } => {
                    let fence = claim.fence.unwrap_or(fence);
                    self.enter(now, id, fence, at, bearer.terms.ttl);
                }
                Standing::Waiting if claim.is_stray => {
                    claim.stage = Stage::Rejoining;
                    self.send(now, Call::Leave(bearer));
                }
                Standing::Waiting => {
                    claim.stage = Stage::Waiting;
                    claim.since = at;
                    self.waits(id, &ahead);
                }
                Standing::Gone => {
                    self.start_over(now, id);
                    self.retry(now, id);
                }
            }
        }
    }

    fn renew_replied(
        &mut self,
        now: Moment,
        at: Moment,
        bearer: &Bearer,
        result: Result<Reply<S>, Trouble>,
    ) {
        let Some(claim) = self.claim(bearer) else {
            return;
        };
        claim.renewals = claim.renewals.saturating_sub(1);
        let is_brief = bearer.terms.ttl < claim.bearer.terms.ttl;
        claim.may_be_cut |= is_brief && matches!(result, Err(Trouble::Unknown(_)));
        let id = claim.bearer.terms.id;
        if bearer.terms.kind != claim.bearer.terms.kind && !matches!(result, Ok(Reply::Ours(true)))
        {
            // Whether the writer holds the lock says nothing about the reader that it has become.
            return self.renew(now, id);
        }
        let ttl = claim.counted(bearer.terms.ttl);
        match (claim.stage, result) {
            (
                Stage::Held { .. } | Stage::Confirming { .. } | Stage::Passing { .. },
                Err(Trouble::NotRun),
            ) => {
                let others = claim.renewals;
                let bearer = self.renews_again(now, bearer, others);
                self.send_renewal(now, bearer);
            }
            (Stage::Held { .. }, Ok(Reply::Ours(true))) => match &mut self.replicas {
                Some(replicas) => replicas.add(bearer.clone(), at, ttl),
                None => self.renewed(id, at, ttl),
            },
            (Stage::Held { .. }, Ok(_)) => self.lost(now, id),
            (Stage::Held { .. }, Err(trouble)) => {
                claim.not_renewed(&trouble);
                let cause = trouble.cause();
                self.claims.report(Outcome::RenewFailed { id, cause });
            }
            (Stage::Passing { fence, .. }, Ok(Reply::Ours(true))) => {
                let since = at;
                claim.stage = Stage::Passing { fence, since, ttl };
            }
            (Stage::Confirming { fence }, Ok(Reply::Ours(true))) if now < deadline(at, ttl) => {
                self.granted(now, id, fence, at, ttl);
            }
            (Stage::Confirming { .. } | Stage::Passing { .. }, Ok(Reply::Ours(false))) => {
                self.start_over(now, id);
                self.retry(now, id);
            }
            (Stage::Confirming { .. }, result) => {
                self.unsure(bearer, now);
                if let Err(trouble) = result {
                    self.trouble(id, &trouble);
                }
            }
            _ => {}
        }
    }

    fn pass_replied(
        &mut self,
        now: Moment,
        bearer: &Bearer,
        passed: u64,
        result: Result<Reply<S>, Trouble>,
    ) {
        let Some(claim) = self.claim(bearer) else {
            return;
        };
        let Stage::Passing { fence, since, ttl } = claim.stage else {
            return;
        };
        // A chain has one token: the one before it, which gave up, may have asked.
        if passed != fence {
            return;
        }
        let id = claim.bearer.terms.id;
        match result {
            Ok(Reply::Ours(true)) => {
                claim.unknown = false;
                if deadline(since, ttl).since(now) < ttl.min(CLAIM_TTL) / 2 {
                    self.confirm(now, id, fence);
                } else {
                    self.hold(now, id, fence, since, ttl);
                }
            }
            // It is not ours any more, or somebody relies on the fence of the one before.
            Ok(_) => {
                let pause = Duration::from_millis(fastrand::u64(10..=50));
                self.claims.schedule(now.after(pause), id);
            }
            Err(Trouble::NotRun) => self.pass(now, id, fence, since, ttl),
            Err(trouble) => {
                self.unsure(bearer, now.after(PAUSE));
                self.trouble(id, &trouble);
            }
        }
    }

    fn raise_replied(
        &mut self,
        now: Moment,
        at: Moment,
        bearer: Bearer,
        fence: u64,
        result: Result<Reply<S>, Trouble>,
    ) {
        if let Err(Trouble::NotRun) = result {
            return self.send(now, Call::Raise { bearer, fence });
        }
        self.renew_replied(now, at, &bearer, result);
    }

    fn release_replied(&mut self, now: Moment, bearer: &Bearer, result: Result<Reply<S>, Trouble>) {
        let Some(claim) = self.claim(bearer) else {
            return;
        };
        if claim.stage == Stage::Rejoining {
            return self.has_left(now, bearer, &result);
        }
        if !claim.ends() {
            return;
        }
        let (id, ttl) = (bearer.terms.id, bearer.terms.ttl);
        match result {
            Ok(reply) => {
                let refused = claim.refused.take();
                let ours = matches!(reply, Reply::Ours(true));
                self.released(id, refused.map_or(Ok(ours), Err));
            }
            Err(Trouble::Never(cause)) => {
                // The driver need not wait until somebody gives the right back.
                let forbidden = match claim.stage {
                    Stage::Releasing { until, .. } => until,
                    _ => now.after(ttl),
                };
                claim.forbidden.get_or_insert(forbidden);
                let result = Err(cause);
                self.claims.report(Outcome::Released { id, result });
                let pause = LONG_PAUSE.min(ttl / 10);
                self.claims.schedule(now.after(pause), id);
            }
            Err(Trouble::NotRun) => self.retry(now, id),
            Err(trouble) => match (claim.stage, trouble) {
                (Stage::Leaving { until }, Trouble::NotNow(cause)) => {
                    self.leave_refused(now, bearer, until, cause);
                }
                _ => self.claims.schedule(now.after(PAUSE), id),
            },
        }
    }

    /// The answer to a release of what no claim has, which was sent then for the first time.
    fn unclaimed_replied(
        &mut self,
        now: Moment,
        at: Moment,
        bearer: &Bearer,
        call: Call<S>,
        result: &Result<Reply<S>, Trouble>,
    ) {
        let may_last = now < at.after(bearer.terms.ttl);
        match result {
            Err(Trouble::Unknown(_) | Trouble::NotRun) if may_last => self.send(at, call),
            Err(Trouble::NotNow(_)) if may_last => {
                let pause = (now.since(at) / 2).clamp(PAUSE, LONG_PAUSE);
                let sent = Sent::new(call, at);
                self.unclaimed.send_at(now.after(pause), sent);
            }
            // What may not be released ends with its ttl.
            _ => self.unclaimed.forget(bearer.token),
        }
    }

    /// It joins again under the present session, once it is certain that nobody waits for the former one.
    fn has_left(&mut self, now: Moment, bearer: &Bearer, result: &Result<Reply<S>, Trouble>) {
        let id = bearer.terms.id;
        match result {
            Ok(_) => {
                self.start_over(now, id);
                self.retry(now, id);
            }
            Err(Trouble::NotRun) => self.send(now, Call::Leave(bearer.clone())),
            Err(trouble) => {
                self.unsure(bearer, now.after(PAUSE));
                self.trouble(id, trouble);
            }
        }
    }

    /// The pauses grow, since a server may refuse for long while more and more waiters give up. `until` is a ttl after
    /// the waiter gave up. A ttl later, the server hands no lock to its token any more.
    fn leave_refused(&mut self, now: Moment, bearer: &Bearer, until: Moment, cause: Cause) {
        let (id, ttl) = (bearer.terms.id, bearer.terms.ttl);
        let left = until.after(ttl).since(now);
        if left.is_zero() {
            self.release_unclaimed(now, Call::Leave(bearer.clone()));
            return self.released(id, Err(cause));
        }
        let elapsed = (2 * ttl).saturating_sub(left);
        let again = now.after((elapsed / 2).clamp(PAUSE, LONG_PAUSE));
        let again = if now < until { again.min(until) } else { again };
        self.claims.schedule(again, id);
    }

    /// How long the replicas have to confirm everything that has been said so far, if they
    /// are to be asked now, and a lock that it was about.
    pub(crate) fn ask_replicas(&mut self) -> Option<(Duration, LockKey)> {
        self.replicas.as_mut()?.ask()
    }

    /// The replicas have what they were asked about, or too few of them do.
    pub(crate) fn replicas_answered(&mut self, now: Moment, answer: &Result<(), Trouble>) {
        let asked = self.replicas.as_mut().map(Replicas::answered);
        for said in asked.into_iter().flatten() {
            match answer {
                Ok(()) => self.confirmed(now, said),
                Err(trouble) => self.unconfirmed(now, &said, trouble),
            }
        }
    }

    /// The connection has ended: nobody will confirm anything.
    pub(super) fn replicas_gone(&mut self, trouble: &Trouble) {
        let all = self.replicas.as_mut().map(Replicas::give_up);
        for said in all.into_iter().flatten() {
            self.unconfirmed(said.since, &said, trouble);
        }
    }

    fn confirmed(&mut self, now: Moment, said: Unconfirmed) {
        let Unconfirmed { bearer, since, ttl } = said;
        let Some(claim) = self.claim(&bearer) else {
            return;
        };
        let id = claim.bearer.terms.id;
        match claim.stage {
            Stage::Held { .. } => self.renewed(id, since, ttl),
            Stage::Replicating { fence } if now < deadline(since, ttl) => {
                self.hold(now, id, fence, since, ttl);
            }
            Stage::Replicating { .. } => self.unsure(&bearer, now),
            _ => {}
        }
    }

    fn unconfirmed(&mut self, now: Moment, said: &Unconfirmed, trouble: &Trouble) {
        let Some(claim) = self.claim(&said.bearer) else {
            return;
        };
        let id = claim.bearer.terms.id;
        match claim.stage {
            Stage::Held { .. } => {
                claim.not_renewed(trouble);
                let cause = trouble.cause();
                self.claims.report(Outcome::RenewFailed { id, cause });
            }
            Stage::Replicating { .. } => {
                self.unsure(&said.bearer, now.after(PAUSE));
                self.trouble(id, trouble);
            }
            _ => {}
        }
    }
}

/// Passes the reply to a step on to its query.
fn step_replied<S: Step>(by: Option<AskedBy<S>>, result: Result<Reply<S>, Trouble>) {
    let answer = match result {
        Ok(Reply::Step(answer)) => Ok(answer),
        // A step has no other reply.
        Ok(_) => return,
        Err(trouble) => Err(trouble),
    };
    let _ = by.map(|by| by.send(answer));
}
