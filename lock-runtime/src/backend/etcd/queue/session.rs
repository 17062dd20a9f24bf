//! A session: the lease that all locks of one ttl share, and the calls about it. A state machine
//! without I/O.

use std::time::Duration;

use super::claim::call_timeout;
use super::lease::{Beat, Marker, Open, Quorum, SessionEvent};
use super::order::{LONG_PAUSE, PAUSE, Recipient, SessionStep as Step};
use crate::backend::etcd::protocol::call::{Call, Reply, Sent};
use crate::backend::etcd::protocol::keys::Keys;
use crate::backend::etcd::protocol::trouble::{Trouble, cause};
use crate::base::clock::Moment;
use crate::types::deadline::deadline;
use crate::types::error::Cause;
use crate::types::holder::THIS_PROCESS;
use crate::types::terms::LeaseId;

#[derive(Debug)]
pub(super) struct Session {
    /// The requested time, in whole seconds.
    asked: Duration,
    state: State,
    /// How many claims need it.
    pub(super) users: usize,
    /// The renewals that the next confirmation answers.
    pub(super) renewing: Vec<LeaseId>,
}

#[derive(Debug)]
enum State {
    Closed { until: Moment },
    Granting,
    Open(Open),
}

/// The base of an entry: its lease and the state of the marker.
pub(super) struct Base {
    pub(super) lease: i64,
    pub(super) marker: Vec<u8>,
    pub(super) epoch: i64,
}

/// The shared surroundings of sessions: names of keys, the quorum of a keep-alive, and the place for
/// calls.
pub(super) struct Surroundings<'a> {
    pub(super) keys: &'a Keys,
    pub(super) quorum: &'a Quorum,
    pub(super) calls: &'a mut Vec<Sent<Recipient>>,
}

impl Session {
    pub(super) fn new(asked: Duration) -> Self {
        Self {
            asked,
            state: State::Closed {
                until: Moment::from_nanos(0),
            },
            users: 0,
            renewing: Vec::new(),
        }
    }

    /// The present base for an entry.
    pub(super) fn base(&self, keys: &Keys) -> Option<Base> {
        match self.state {
            State::Open(Open {
                lease,
                marker: Marker::Written(epoch),
                ..
            }) => Some(Base {
                lease,
                marker: keys.marker(lease),
                epoch,
            }),
            _ => None,
        }
    }

    /// Whether this is its lease.
    pub(super) fn is_on(&self, lease: i64) -> bool {
        matches!(&self.state, State::Open(open) if open.lease == lease)
    }

    /// Since when it is confirmed, and for how long from there.
    pub(super) fn confirmed(&self) -> Option<(Moment, Duration)> {
        match &self.state {
            State::Open(open) => Some((open.since, open.ttl)),
            _ => None,
        }
    }

    /// Whether little time has passed since it was confirmed.
    pub(super) fn is_fresh(&self, now: Moment) -> bool {
        self.confirmed()
            .is_some_and(|(since, ttl)| now.since(since) <= ttl / 10)
    }

    /// How long a lock on it is surely held.
    pub(super) fn left(&self, now: Moment) -> Duration {
        let ends = self.confirmed().map(|(since, ttl)| deadline(since, ttl));
        ends.map_or(Duration::ZERO, |end| end.since(now))
    }

    /// Makes a lease, unless there is one.
    pub(super) fn open(&mut self, now: Moment, around: &mut Surroundings<'_>) {
        if let State::Closed { until } = self.state
            && until <= now
        {
            self.state = State::Granting;
            self.send(now, Step::Grant, Call::grant(self.asked), around);
        }
    }

    /// Writes the marker again: calls without an answer that have made no entry yet make
    /// none any more.
    pub(super) fn move_on(&mut self, now: Moment, around: &mut Surroundings<'_>) {
        let State::Open(open) = &mut self.state else {
            return;
        };
        if matches!(open.marker, Marker::Writing) {
            return;
        }
        open.marker = Marker::Writing;
        let value = format!("{}@{}", THIS_PROCESS.id, THIS_PROCESS.host);
        let lease = open.lease;
        let call = Call::put(around.keys.marker(lease), value.into(), lease);
        self.send(now, Step::Mark(lease), call, around);
    }

    /// The marker of `lease` was not where a call expected it: a late call has written it at this
    /// revision, or a backup from before it was written last was put back, and it has to be
    /// written again. Where there is no marker, the lease has ended.
    pub(super) fn found_marker(
        &mut self,
        now: Moment,
        lease: i64,
        revision: Option<i64>,
    ) -> SessionEvent {
        let Some(revision) = revision else {
            return self.ended(now, lease);
        };
        if let State::Open(open) = &mut self.state
            && open.lease == lease
            && let Marker::Written(known) = open.marker
        {
            // Another call may have found it before.
            open.marker = if revision >= known {
                Marker::Written(revision)
            } else {
                Marker::Due(now)
            };
        }
        SessionEvent::Nothing
    }

    /// The server has answered that `lease` has ended. What it says about an earlier one
    /// says nothing about this one.
    pub(super) fn ended(&mut self, now: Moment, lease: i64) -> SessionEvent {
        if self.is_on(lease) {
            self.lost(now)
        } else {
            SessionEvent::Nothing
        }
    }

    /// Sends a keep-alive, unless one is on its way.
    pub(super) fn beat(&mut self, now: Moment, around: &mut Surroundings<'_>) {
        if let State::Open(open) = &mut self.state
            && open.beat.is_none()
        {
            open.beat = Some(Beat::sent(now));
            let call = Call::keep_alive(open.lease);
            self.send(now, Step::Alive(now), call, around);
        }
    }

    /// Another member is asked from here on: a keep-alive whose answers may be lost is
    /// sent again.
    pub(super) fn connected(&mut self, now: Moment, around: &mut Surroundings<'_>) {
        if let State::Open(open) = &mut self.state
            && open.beat.take().is_some()
        {
            self.beat(now, around);
        }
    }

    /// No member can be asked.
    pub(super) fn disconnected(&mut self, now: Moment, why: &Cause) -> SessionEvent {
        match &mut self.state {
            State::Open(open) => open.fail(now, why.clone()),
            _ => SessionEvent::Nothing,
        }
    }

    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        let is_used = |_: &Moment| self.users > 0;
        match &self.state {
            State::Closed { until } => Some(*until).filter(is_used),
            State::Granting => None,
            State::Open(open) => {
                let beat = match &open.beat {
                    Some(beat) => Some(beat.at.after(call_timeout(open.ttl))),
                    None => Some(open.next_beat).filter(is_used),
                };
                let mark = match open.marker {
                    Marker::Due(at) => Some(at).filter(is_used),
                    _ => None,
                };
                beat.into_iter().chain(mark).min()
            }
        }
    }

    /// Carries out due work.
    pub(super) fn tick(&mut self, now: Moment, around: &mut Surroundings<'_>) -> SessionEvent {
        match &mut self.state {
            State::Closed { .. } if self.users > 0 => self.open(now, around),
            State::Open(open)
                if self.users > 0 && matches!(open.marker, Marker::Due(at) if at <= now) =>
            {
                self.move_on(now, around);
            }
            _ => {}
        }
        let State::Open(open) = &mut self.state else {
            return SessionEvent::Nothing;
        };
        match &mut open.beat {
            Some(beat) if beat.at.after(call_timeout(open.ttl)) <= now => {
                let silent = || cause("a majority of the members has not confirmed the lease");
                let why = beat.failed.take().unwrap_or_else(silent);
                open.fail(now, why)
            }
            None if self.users > 0 && open.next_beat <= now => {
                self.beat(now, around);
                SessionEvent::Nothing
            }
            _ => SessionEvent::Nothing,
        }
    }

    /// Takes in the answer to a call that was sent `at`.
    pub(super) fn answered(
        &mut self,
        now: Moment,
        at: Moment,
        step: Step,
        result: Result<Reply, Trouble>,
        around: &mut Surroundings<'_>,
    ) -> SessionEvent {
        match (step, &mut self.state) {
            (Step::Grant, State::Granting) => self.granted(now, at, result, around),
            // An answer about an earlier lease says nothing about this one.
            (Step::Mark(lease), State::Open(open)) if lease == open.lease => match result {
                Ok(Reply::Txn(txn)) => {
                    open.marker = Marker::Written(txn.revision());
                    open.seen = open.seen.max(txn.revision());
                    SessionEvent::Ready
                }
                Err(Trouble::NoLease(_)) => self.lost(now),
                result => {
                    let is_refused = matches!(result, Err(Trouble::Never(_)));
                    let pause = if is_refused { LONG_PAUSE } else { PAUSE };
                    open.marker = Marker::Due(now.after(pause));
                    failed(result)
                }
            },
            (Step::Alive(beat), State::Open(open)) => {
                let look = open.heard(beat, result, around.quorum);
                if let Some(after_majority) = look {
                    self.look(now, beat, after_majority, around);
                }
                SessionEvent::Nothing
            }
            (
                Step::Look {
                    beat,
                    after_majority,
                    floor,
                },
                State::Open(open),
            ) if open.awaits(beat) => match result {
                Ok(Reply::Range(found)) => {
                    // After a restore, later writes are gone, and entries that were deleted later are
                    // there again.
                    if found.kvs.is_empty() || found.revision() < floor {
                        return self.lost(now);
                    }
                    open.seen = open.seen.max(found.revision());
                    if after_majority {
                        return open.confirm(beat);
                    }
                    if open.looked_in_doubt(beat, around.quorum) {
                        self.look(now, beat, true, around);
                    }
                    SessionEvent::Nothing
                }
                Ok(_) => SessionEvent::Nothing,
                Err(trouble) => open.fail(now, trouble.cause()),
            },
            _ => SessionEvent::Nothing,
        }
    }

    fn granted(
        &mut self,
        now: Moment,
        at: Moment,
        result: Result<Reply, Trouble>,
        around: &mut Surroundings<'_>,
    ) -> SessionEvent {
        let Ok(Reply::Lease(lease)) = result else {
            let until = now.after(PAUSE);
            self.state = State::Closed { until };
            return failed(result);
        };
        let ttl = Duration::from_secs(u64::try_from(lease.ttl).unwrap_or(0));
        self.state = State::Open(Open {
            lease: lease.id,
            ttl,
            since: at,
            marker: Marker::Due(now),
            beat: None,
            next_beat: at.after(ttl / 3),
            seen: 0,
        });
        self.move_on(now, around);
        SessionEvent::Nothing
    }

    /// The lease has ended, or belongs to a history that is no more.
    pub(super) fn lost(&mut self, now: Moment) -> SessionEvent {
        self.state = State::Closed { until: now };
        SessionEvent::Lost
    }

    fn look(&self, now: Moment, beat: Moment, after_majority: bool, around: &mut Surroundings<'_>) {
        if let State::Open(open) = &self.state {
            let call = Call::get(around.keys.marker(open.lease));
            let floor = open.seen;
            let step = Step::Look {
                beat,
                after_majority,
                floor,
            };
            self.send(now, step, call, around);
        }
    }

    fn send(&self, at: Moment, step: Step, call: Call, around: &mut Surroundings<'_>) {
        around.calls.push(Sent {
            to: Recipient::Session(self.asked, step),
            call,
            at,
            call_timeout: call_timeout(self.asked),
        });
    }
}

fn failed(result: Result<Reply, Trouble>) -> SessionEvent {
    let other = || Trouble::said("the answer belongs to another call");
    SessionEvent::Failed(result.err().unwrap_or_else(other))
}
