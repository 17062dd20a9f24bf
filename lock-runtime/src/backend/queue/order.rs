//! What a majority of servers asks of the queue of one, beside what the driver asks.

use std::sync::Arc;
use std::time::Duration;

use super::Queue;
use super::claim::{Claim, Stage};
use super::protocol::call::{Bearer, Call};
use super::protocol::step::Step;
use crate::backend::token::Token;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::terms::{LeaseId, Terms};

/// One server's part of something that several of them decide.
#[derive(Debug)]
pub(crate) enum Order {
    /// Take the lock, or wait in the queue at this position. The tokens of all parts of an
    /// acquisition are siblings.
    Acquire {
        terms: Arc<Terms>,
        token: Token,
        position: u64,
    },
    /// Let go of what was granted, and wait in the queue at this position. It may be granted
    /// again, or else it goes to the first waiter.
    Yield { id: LeaseId, position: u64 },
    /// Extend the lease, and let the counter of acquisitions be no smaller than this.
    /// Answered with [`Outcome::Renewed`], as a renewal is.
    Raise { id: LeaseId, fence: u64 },
    /// It is held under this fence, which answers name.
    Number { id: LeaseId, fence: u64 },
    /// Release the lock, which cools down until then.
    Release { id: LeaseId, cools_until: Moment },
    /// What the driver asks.
    Plain(Request),
}

impl<S: Step> Queue<S> {
    pub(crate) fn obey(&mut self, now: Moment, order: Order) {
        match order {
            Order::Acquire {
                terms,
                token,
                position,
            } => {
                let mut claim = Claim::new(Bearer::new(token, terms), now);
                claim.is_part = true;
                claim.position = Some(position);
                self.begin(now, claim);
            }
            Order::Yield { id, position } => self.give_way(now, id, position),
            Order::Raise { id, fence } => self.raise(now, id, fence),
            Order::Number { id, fence: ours } => {
                if let Some(claim) = self.claims.get_mut(&id)
                    && let Stage::Held { fence, .. } = &mut claim.stage
                {
                    *fence = ours;
                }
            }
            Order::Release { id, cools_until } => {
                if let Some(claim) = self.claims.get_mut(&id) {
                    let until = now.after(claim.bearer.terms.ttl);
                    claim.stage = Stage::Releasing { until, cools_until };
                }
                self.retry(now, id);
            }
            Order::Plain(request) => self.submit(now, request),
        }
    }

    /// It joins the queue before it lets go.
    fn give_way(&mut self, now: Moment, id: LeaseId, position: u64) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.position = Some(position);
        let bearer = claim.bearer.clone();
        if let Some(trouble) = self.obstacle(&bearer.terms.key).cloned() {
            // The lock may be held under this token still, which the server says later.
            self.unsure(&bearer, now);
            return self.trouble(id, &trouble);
        }
        self.start_over(now, id);
        self.retry(now, id);
        let release = Call::Release {
            bearer,
            cooldown: Duration::ZERO,
            crowded: false,
            noted: false,
        };
        self.release_unclaimed(now, release);
    }

    fn raise(&mut self, now: Moment, id: LeaseId, fence: u64) {
        let Some(claim) = self.claims.get(&id).filter(|it| it.is_held()) else {
            return;
        };
        let bearer = claim.bearer.clone();
        match &self.down {
            None => self.send(now, Call::Raise { bearer, fence }),
            Some(trouble) => {
                let cause = trouble.cause();
                self.claims.report(Outcome::RenewFailed { id, cause });
            }
        }
    }
}
