//! One acquisition on several servers: what each has said of its part, and what follows
//! from all of them.

use std::sync::Arc;
use std::time::Duration;

use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::deadline::deadline;
use crate::types::error::Cause;
use crate::types::holder::Holder;
use crate::types::terms::Terms;

/// How many of all servers have to agree, whether they answer or not.
pub(super) fn majority(servers: usize) -> usize {
    servers / 2 + 1
}

#[derive(Debug)]
pub(super) struct Claim {
    pub(super) terms: Arc<Terms>,
    /// One of the tokens, which begin alike on all servers.
    token: Token,
    /// Its position in each queue.
    pub(super) position: u64,
    pub(super) parts: Vec<Part>,
    pub(super) stage: Stage,
    /// How often it has yielded or looked again.
    pub(super) rounds: u32,
}

#[derive(Debug)]
pub(super) enum Stage {
    Acquiring,
    /// Granted by a majority, which is brought to this fence.
    Raising {
        fence: u64,
    },
    Held {
        fence: u64,
        granted: Moment,
        renewing: Option<Renewing>,
    },
    /// Nobody wants it any more; until enough servers know.
    Leaving,
}

/// A renewal that has not reached a majority.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewing {
    pub(super) started: Moment,
    /// Whether it was reported as failed. The answer that makes the majority may come all the same: a server may have
    /// been asked twice.
    pub(super) failed: bool,
}

/// The last answer of one server.
#[derive(Debug)]
pub(super) enum Part {
    /// Nothing since it was asked then.
    Asked(Moment),
    /// Somebody else has the lock there.
    Waiting(Option<Box<Holder>>),
    /// It cannot be asked at the moment.
    Trouble,
    Granted(Grant),
    /// The grant is gone.
    Lost,
    /// It will never grant it.
    Failed,
    /// It was asked to release: whether it held the lock, or `None` before it has answered.
    Left(Option<Result<bool, Cause>>),
}

/// The lock is ours on a server for `ttl` from `since`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) fence: u64,
    pub(super) since: Moment,
    pub(super) ttl: Duration,
    /// Until when it is kept from others for those that have not answered.
    pub(super) kept: Moment,
    /// While a renewal is on its way: the fence that it brings the server to, or zero.
    pub(super) asked: Option<u64>,
}

impl Grant {
    pub(super) fn deadline(&self) -> Moment {
        deadline(self.since, self.ttl)
    }
}

impl Claim {
    /// One of which all servers are asked now.
    pub(super) fn new(
        now: Moment,
        terms: Arc<Terms>,
        token: Token,
        position: u64,
        servers: usize,
    ) -> Self {
        Self {
            terms,
            token,
            position,
            parts: (0..servers).map(|_| Part::Asked(now)).collect(),
            stage: Stage::Acquiring,
            rounds: 0,
        }
    }

    pub(super) fn majority(&self) -> usize {
        majority(self.parts.len())
    }

    /// How many servers are enough to be in the way of a majority.
    pub(super) fn minority(&self) -> usize {
        self.parts.len() - self.majority() + 1
    }

    pub(super) fn count(&self, is: impl Fn(&Part) -> bool) -> usize {
        self.parts.iter().filter(|part| is(part)).count()
    }

    pub(super) fn grants(&self) -> impl Iterator<Item = (usize, &Grant)> {
        let parts = self.parts.iter().enumerate();
        parts.filter_map(|(server, part)| match part {
            Part::Granted(grant) => Some((server, grant)),
            _ => None,
        })
    }

    pub(super) fn grant(&mut self, server: usize) -> Option<&mut Grant> {
        match &mut self.parts[server] {
            Part::Granted(grant) => Some(grant),
            _ => None,
        }
    }

    /// Those that are surely ours.
    pub(super) fn valid(&self, now: Moment) -> impl Iterator<Item = (usize, &Grant)> {
        self.grants().filter(move |(_, it)| now < it.deadline())
    }

    /// The grant with which a majority ends: until its deadline, so many servers have the
    /// lock for us. `None` if they are too few, or those that gave out `fence` or more are.
    pub(super) fn last_of_majority(&self, now: Moment, fence: u64) -> Option<Grant> {
        let valid = self.valid(now).filter(|(_, it)| it.fence >= fence);
        let mut grants: Vec<_> = valid.map(|(_, grant)| *grant).collect();
        grants.sort_by_key(|it| std::cmp::Reverse(it.deadline()));
        grants.get(self.majority() - 1).copied()
    }

    /// Whether all that may still be granted, as far as is known, is too little.
    pub(super) fn is_short(&self) -> bool {
        self.count(|it| matches!(it, Part::Asked(_) | Part::Granted(_))) < self.majority()
    }

    /// Whether so many have answered that they decide.
    pub(super) fn has_heard_majority(&self) -> bool {
        let heard = |it: &Part| !matches!(it, Part::Asked(_) | Part::Trouble | Part::Failed);
        self.count(heard) >= self.majority()
    }

    /// How many servers have said that it is not ours.
    pub(super) fn denied(&self) -> usize {
        self.count(|it| matches!(it, Part::Waiting(_) | Part::Lost | Part::Failed))
    }

    /// The holder that most servers name, and how many name it.
    pub(super) fn holder(&self) -> (Option<&Holder>, usize) {
        let ours = self.token.to_string();
        let named = self.parts.iter().filter_map(|part| match part {
            Part::Waiting(Some(holder)) => Some((Token::family(&holder.id), &**holder)),
            _ => None,
        });
        let others = named.filter(|(family, _)| *family != Token::family(&ours));
        let others: Vec<_> = others.collect();
        let votes = |family| others.iter().filter(|(it, _)| *it == family).count();
        let votes = others.iter().map(|(family, it)| (votes(*family), *it));
        match votes.max_by_key(|(votes, _)| *votes) {
            Some((votes, holder)) => (Some(holder), votes),
            None => (None, 0),
        }
    }
}

impl Claim {
    /// How its release ends, as soon as that is known: whether a majority had it for us.
    pub(super) fn ending(&self) -> Option<Result<bool, Cause>> {
        let ours = self.count(|it| matches!(it, Part::Left(Some(Ok(true)))));
        let others = self.count(|it| matches!(it, Part::Left(Some(Ok(false)))));
        let open = self.count(|it| matches!(it, Part::Left(None)));
        if ours >= self.majority() {
            return Some(Ok(true));
        }
        if others >= self.minority() {
            return Some(Ok(false));
        }
        if open > 0 {
            return None;
        }
        self.parts.iter().find_map(|part| match part {
            Part::Left(Some(Err(cause))) => Some(Err(cause.clone())),
            _ => None,
        })
    }

    /// The reason why there is no majority, if no server has given one.
    pub(super) fn too_few() -> Trouble {
        Trouble::not_now("fewer than a majority of the servers have answered")
    }
}
