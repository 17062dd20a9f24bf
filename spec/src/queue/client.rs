//! An acquisition of a client: where it is, what it sends next, and what it makes of what it hears. `#…` names the
//! section of docs/protocol.md that has the rule.

use super::Scenario;
use super::rules::{Bug, Rules};
use super::server::{Position, Push, Reply, Request, Token};

/// A call that has not been answered: the ticks since it was sent.
pub type Pending = Option<u8>;

/// A renewal that has not been answered: the ticks since it was sent, and its ttl.
pub type Renewal = Option<(u8, u8)>;

/// Where an acquisition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It has not begun.
    New,
    /// It is about to send `acquire` with a fresh token.
    Ready,
    /// `acquire` was sent that many ticks ago.
    Acquiring(u8),
    /// It is in the queue, or does not know whether it is.
    Waiting {
        /// The ticks since the last call after which it was not a holder yet.
        since: u8,
        /// `ask`.
        asked: Pending,
        /// Whether it asks at once: its last call was not answered.
        due: bool,
        /// The fence with which it will begin, if it has heard of its grant.
        fence: Option<u8>,
    },
    /// Its client has the lock for it too, and hands it over.
    Following {
        /// The token under which the server knows the chain.
        chain: Token,
        /// The fence with which it will begin.
        fence: u8,
    },
    /// It renews before its body begins.
    Confirming {
        /// The fence with which it will begin.
        fence: u8,
        /// The renewal.
        renewing: Renewal,
    },
    /// Its body runs.
    Held {
        /// The fence with which it began.
        fence: u8,
        /// The ticks until its deadline.
        left: u8,
        /// The ticks from its last renewal to the deadline.
        lasts: u8,
        /// Whether its next renewal is short: it was handed the lock when little was left.
        brief: bool,
        /// The renewal.
        renewing: Renewal,
    },
    /// It releases the lock, or leaves the queue.
    Leaving {
        /// Whether it was a holder.
        held: bool,
        /// Whether the call is to be answered.
        sent: bool,
    },
    /// It has ended.
    Done,
}

/// One acquisition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Where it is.
    pub stage: Stage,
    /// Its token. A follower that was handed the lock has the token of its chain.
    pub token: Token,
    /// Its own latest token.
    pub attempt: u8,
    /// Its position, once `waiting` has named it.
    pub position: Option<Position>,
    /// Whether a short renewal under its token has no answer, and may still arrive.
    pub cut: bool,
}

impl Task {
    /// The acquisition of this number, which has not begun.
    pub fn new(number: u8) -> Self {
        Self {
            stage: Stage::New,
            token: Token {
                task: number,
                attempt: 0,
            },
            attempt: 0,
            position: None,
            cut: false,
        }
    }

    /// Whether the next turn of the executor polls its body.
    pub fn is_polled(&self, rules: &Rules) -> bool {
        matches!(self.stage, Stage::Held { left, .. } if left > 0 || rules.breaks(Bug::PolledWithoutALook))
    }

    /// Whether it wants the lock and does not have it.
    pub fn wants(&self) -> bool {
        matches!(
            self.stage,
            Stage::Ready
                | Stage::Acquiring(_)
                | Stage::Waiting { .. }
                | Stage::Following { .. }
                | Stage::Confirming { .. }
        )
    }

    /// Whether a push of its token is about this acquisition.
    pub fn is_known(&self) -> bool {
        !matches!(
            self.stage,
            Stage::New | Stage::Ready | Stage::Following { .. } | Stage::Done
        )
    }

    /// Its next call, if one is due. `follows` says whether it has followers, `quarantine` whether one lasts.
    pub fn next_call(
        &self,
        scenario: &Scenario,
        number: u8,
        follows: bool,
        quarantine: bool,
    ) -> Option<Request> {
        let rules = &scenario.rules;
        let (plan, token) = (&scenario.plans[usize::from(number)], self.token);
        // #chains: the holder whom others follow renews for no longer than 3 s.
        let ttl = if follows {
            rules.ttl.min(rules.claim)
        } else {
            rules.ttl
        };
        match self.stage {
            // #quarantine: the client sends neither `acquire` nor `ask`, and does not leave queues. It renews what
            // it holds, and releases by a renewal that is over at once or after the cooldown.
            Stage::Ready | Stage::Waiting { .. } | Stage::Leaving { held: false, .. }
                if quarantine =>
            {
                None
            }
            Stage::Leaving {
                held: true,
                sent: false,
            } if quarantine && !plan.issues => Some(Request::Shorten(
                token,
                if plan.cools { rules.cooldown } else { 0 },
            )),
            Stage::Ready if plan.tries => Some(Request::Try(token)),
            Stage::Ready if plan.adopts.is_some() => {
                plan.adopts.map(|issuer| Request::Adopt(token, issuer))
            }
            Stage::Ready => {
                let position = self
                    .position
                    .filter(|_| !rules.breaks(Bug::PositionForgotten));
                Some(Request::Acquire(token, position))
            }
            // #taking-a-lock: a waiter asks at least every second, and at once after connecting again.
            Stage::Waiting {
                since,
                asked: None,
                due,
                ..
            } => {
                let asks = (due || since > 0) && !rules.breaks(Bug::NobodyAsks);
                asks.then_some(Request::Ask(token))
            }
            Stage::Confirming { renewing: None, .. } => Some(Request::Renew(token, ttl)),
            // #leases: a lease is renewed at a third of its ttl; one that was cut, when half of it has passed.
            Stage::Held {
                left,
                lasts,
                brief,
                renewing: None,
                ..
            } if left > 0 && left < lasts => {
                Some(Request::Renew(token, if brief { ttl } else { rules.ttl }))
            }
            Stage::Leaving {
                held: true,
                sent: false,
            } if plan.cools => Some(Request::CoolDown(token)),
            Stage::Leaving {
                held: true,
                sent: false,
            } if plan.issues => Some(Request::Issue(token)),
            Stage::Leaving { sent: false, .. } => Some(Request::Release(token)),
            _ => None,
        }
    }

    /// Notes that this call was sent.
    pub fn sent(&mut self, request: Request) {
        match (&mut self.stage, request) {
            (Stage::Waiting { asked, .. }, _) => *asked = Some(0),
            (
                Stage::Confirming { renewing, .. } | Stage::Held { renewing, .. },
                Request::Renew(_, ttl),
            ) => {
                *renewing = Some((0, ttl));
            }
            (Stage::Leaving { sent, .. }, _) => *sent = true,
            (stage, _) => *stage = Stage::Acquiring(0),
        }
    }

    /// #taking-a-lock: acquires again, with a fresh token and the old position.
    pub fn start_over(&mut self, number: u8) {
        self.attempt += 1;
        self.token = Token {
            task: number,
            attempt: self.attempt,
        };
        self.cut = false;
        self.stage = Stage::Ready;
    }

    /// Hears a reply. Whether its chain has ended.
    pub fn heard(&mut self, rules: &Rules, number: u8, reply: Reply) -> bool {
        match (reply, self.stage) {
            (Reply::Granted(_, fence), Stage::Acquiring(age)) => {
                self.granted(rules, rules.ttl, age, fence);
            }
            (
                Reply::Granted(_, fence),
                Stage::Waiting {
                    asked: Some(age),
                    fence: kept,
                    ..
                },
            ) => {
                self.granted(rules, rules.ttl, age, kept.unwrap_or(fence));
            }
            (Reply::Waiting(_, position), Stage::Acquiring(age)) => {
                self.position = self.position.or(position);
                self.stage = Stage::Waiting {
                    since: age.min(rules.oldest()),
                    asked: None,
                    due: false,
                    fence: None,
                };
            }
            (
                Reply::Waiting(..),
                Stage::Waiting {
                    asked: Some(age),
                    fence,
                    ..
                },
            ) => {
                self.stage = Stage::Waiting {
                    since: age.min(rules.oldest()),
                    asked: None,
                    due: false,
                    fence,
                };
            }
            (Reply::Gone(_), Stage::Acquiring(_) | Stage::Waiting { asked: Some(_), .. }) => {
                self.start_over(number);
                return true;
            }
            (Reply::Renewed(_, ours), _) => return self.renewed(rules, number, ours),
            (Reply::Released(_), Stage::Leaving { sent: true, .. })
            | (Reply::Refused(_), Stage::Acquiring(_)) => {
                self.stage = Stage::Done;
            }
            _ => {}
        }
        false
    }

    /// Hears whether the lease was extended. Whether its chain has ended.
    fn renewed(&mut self, rules: &Rules, number: u8, ours: bool) -> bool {
        let (Stage::Held {
            renewing: Some((age, ttl)),
            ..
        }
        | Stage::Confirming {
            renewing: Some((age, ttl)),
            ..
        }) = self.stage
        else {
            return false;
        };
        let ttl = self.believed(rules, ttl);
        let (lasts, anew) = (ttl - rules.margin, (ttl - rules.margin).saturating_sub(age));
        self.stage = match (self.stage, ours) {
            // #leases: if the renewal finds the lock gone, the client acquires again; if the deadline has passed, it asks.
            (Stage::Confirming { .. }, false) => {
                self.start_over(number);
                return true;
            }
            (Stage::Confirming { fence, .. }, true) if anew == 0 => Stage::Waiting {
                since: rules.oldest(),
                asked: None,
                due: true,
                fence: Some(fence),
            },
            (Stage::Confirming { fence, .. }, true) => Stage::Held {
                fence,
                left: anew,
                lasts,
                brief: false,
                renewing: None,
            },
            // #leases: a successful one sets the deadline anew, from its own `sent`, unless the old one had passed.
            (Stage::Held { fence, left, .. }, true) => {
                let left = if left > 0 { anew } else { 0 };
                Stage::Held {
                    fence,
                    left,
                    lasts,
                    brief: false,
                    renewing: None,
                }
            }
            // #leases: a renewal that finds another holder ends the lease at once, and a `release` follows.
            _ => {
                self.stage = Stage::Leaving {
                    held: true,
                    sent: false,
                };
                return true;
            }
        };
        false
    }

    /// #taking-a-lock: whether a push for its token gives it the lock, and any followers with it. `age` is that of
    /// the last call before the grant.
    pub fn pushed(&mut self, rules: &Rules, push: &Push, age: u8) -> bool {
        match self.stage {
            Stage::Acquiring(_) | Stage::Waiting { fence: None, .. } => {
                let age = if rules.breaks(Bug::CountedFromThePush) {
                    0
                } else {
                    age
                };
                self.granted(rules, rules.ttl.min(rules.claim), age, push.fence);
                true
            }
            Stage::Held { fence, .. }
            | Stage::Confirming { fence, .. }
            | Stage::Waiting {
                fence: Some(fence), ..
            } => fence == push.fence,
            _ => false,
        }
    }

    /// The ticks since the last call before which it cannot have been granted the lock.
    pub fn age(&self) -> Option<u8> {
        match self.stage {
            Stage::Acquiring(age)
            | Stage::Waiting {
                since: age,
                fence: None,
                ..
            } => Some(age),
            _ => None,
        }
    }

    /// #leases: the deadline counts from the moment before the call was sent.
    fn granted(&mut self, rules: &Rules, ttl: u8, age: u8, fence: u8) {
        let age = if rules.breaks(Bug::CountedFromTheReply) {
            0
        } else {
            age
        };
        let ttl = self.believed(rules, ttl);
        let left = (ttl - rules.margin).saturating_sub(age);
        self.enter(rules, left, ttl, fence, None);
    }

    /// #chains: a short renewal without an answer may still arrive, and cut what a later call has extended.
    fn believed(&self, rules: &Rules, ttl: u8) -> u8 {
        if self.cut { ttl.min(rules.claim) } else { ttl }
    }

    /// #leases: begins if half of the ttl is left until the deadline; else it renews first.
    pub fn enter(&mut self, rules: &Rules, left: u8, ttl: u8, fence: u8, renewing: Renewal) {
        self.stage = if left > 0 && 2 * left >= ttl {
            Stage::Held {
                fence,
                left,
                lasts: ttl - rules.margin,
                brief: false,
                renewing,
            }
        } else {
            Stage::Confirming { fence, renewing }
        };
    }

    /// The connection has broken.
    pub fn disconnected(&mut self, rules: &Rules, number: u8) {
        if let Stage::Held {
            renewing: Some((_, ttl)),
            ..
        }
        | Stage::Confirming {
            renewing: Some((_, ttl)),
            ..
        } = self.stage
        {
            self.cut |= ttl < rules.ttl && !rules.breaks(Bug::ShortRenewalForgotten);
        }
        let asks = |since, fence| Stage::Waiting {
            since,
            asked: None,
            due: true,
            fence,
        };
        self.stage = match self.stage {
            Stage::Acquiring(_) if rules.breaks(Bug::AcquireSentAgain) => Stage::Ready,
            // #taking-a-lock: an acquire without an answer is never sent again under the same token.
            Stage::Acquiring(age) => asks(age.min(rules.oldest()), None),
            Stage::Waiting { since, fence, .. } => asks(since, fence),
            Stage::Confirming { fence, .. } => asks(rules.oldest(), Some(fence)),
            Stage::Held {
                fence, left, lasts, ..
            } => Stage::Held {
                fence,
                left,
                lasts,
                brief: false,
                renewing: None,
            },
            // #leases: a `release` without an answer is repeated.
            Stage::Leaving { held, .. } => Stage::Leaving { held, sent: false },
            // #chains: followers that have not entered acquire again.
            Stage::Following { .. } => {
                self.start_over(number);
                self.stage
            }
            other => other,
        };
    }

    /// Time passes. Ages beyond which nothing is left of a lease are all the same.
    pub fn tick(&mut self, rules: &Rules) {
        let older = |age: &mut u8, ttl: u8| *age = (*age + 1).min(ttl - rules.margin);
        match &mut self.stage {
            Stage::Acquiring(age) => older(age, rules.ttl),
            Stage::Waiting { since, asked, .. } => {
                older(since, rules.ttl.min(rules.claim));
                if let Some(age) = asked {
                    older(age, rules.ttl);
                }
            }
            Stage::Confirming {
                renewing: Some((age, ttl)),
                ..
            } => older(age, *ttl),
            Stage::Held { left, renewing, .. } => {
                *left = left.saturating_sub(1);
                if let Some((age, ttl)) = renewing {
                    older(age, *ttl);
                }
            }
            _ => {}
        }
    }
}
