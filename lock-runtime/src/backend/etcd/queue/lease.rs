//! A lease that was granted: what shows that it lives, and when a keep-alive counts.
//!
//! A member that was cut off or stopped may take itself for the leader, and answer
//! keep-alives that the others know nothing of. So they go to all members, and count
//! once a majority has answered and the session's marker is still there.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::backend::etcd::protocol::call::Reply;
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::base::clock::Moment;
use crate::types::error::Cause;

/// A lease that lives, as far as is known.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) lease: i64,
    pub(super) ttl: Duration,
    /// A moment before the call was sent that was confirmed last.
    pub(super) since: Moment,
    pub(super) marker: Marker,
    pub(super) beat: Option<Beat>,
    pub(super) next_beat: Moment,
    /// The latest revision that was seen.
    pub(super) seen: i64,
}

/// The members whose answers confirm a keep-alive.
#[derive(Debug)]
pub(crate) struct Quorum {
    /// How many.
    pub(crate) needed: usize,
    /// The members that count; all of them if it is empty, since they are not known.
    pub(crate) voters: Vec<u64>,
    /// Why there are not as many to ask.
    pub(crate) too_few: Option<Cause>,
}

impl Quorum {
    /// Before anybody was asked.
    pub(crate) fn of_one() -> Self {
        Self {
            needed: 1,
            voters: Vec::new(),
            too_few: None,
        }
    }

    fn is_met(&self, members: &BTreeSet<u64>) -> bool {
        let counts = |member: &&u64| self.voters.is_empty() || self.voters.contains(member);
        members.iter().filter(counts).count() >= self.needed
    }
}

/// The key that shows that the lease lives.
#[derive(Debug)]
pub(super) enum Marker {
    /// At this revision.
    Written(i64),
    Writing,
    /// To be written then.
    Due(Moment),
}

/// A keep-alive on its way.
#[derive(Debug)]
pub(super) struct Beat {
    pub(super) at: Moment,
    /// Those who have answered it.
    members: BTreeSet<u64>,
    /// Whether the marker is being looked at.
    looking: bool,
    /// The last error.
    pub(super) failed: Option<Cause>,
}

impl Beat {
    pub(super) fn sent(at: Moment) -> Self {
        Self {
            at,
            members: BTreeSet::new(),
            looking: false,
            failed: None,
        }
    }
}

/// News of a session.
#[derive(Debug)]
pub(super) enum SessionEvent {
    Nothing,
    /// Entries can be made on it; calls that were sent before make none any more.
    Ready,
    /// It lives, and can be counted from a later moment.
    Confirmed,
    Lost,
    Failed(Trouble),
}

/// Most of what a session does tells nothing new about it.
impl From<()> for SessionEvent {
    fn from((): ()) -> Self {
        Self::Nothing
    }
}

impl Open {
    /// Whether the keep-alive that was sent at this moment is on its way, so that answers to it count.
    pub(super) fn awaits(&self, beat: Moment) -> bool {
        self.beat.as_ref().is_some_and(|it| it.at == beat)
    }

    /// Takes in a member's answer to a keep-alive; says whether to look for the marker,
    /// and whether that is after a majority has answered.
    pub(super) fn heard(
        &mut self,
        at: Moment,
        result: Result<Reply, Trouble>,
        quorum: &Quorum,
    ) -> Option<bool> {
        let beat = self.beat.as_mut().filter(|beat| beat.at == at)?;
        let mut doubt = false;
        match result {
            Ok(Reply::Lease(lease)) if lease.ttl > 0 => {
                let member = lease.header.map_or(0, |header| header.member_id);
                beat.members.insert(member);
            }
            // This member may know less than the others.
            Ok(_) | Err(Trouble::NoLease(_)) => doubt = true,
            Err(trouble) => beat.failed = Some(trouble.cause()),
        }
        let confirmed = quorum.is_met(&beat.members);
        let look = !beat.looking && (confirmed || doubt);
        beat.looking |= look;
        look.then_some(confirmed)
    }

    /// The marker was there before a majority had answered; `true` if it has by now.
    pub(super) fn looked_in_doubt(&mut self, at: Moment, quorum: &Quorum) -> bool {
        let Some(beat) = self.beat.as_mut().filter(|beat| beat.at == at) else {
            return false;
        };
        beat.looking = quorum.is_met(&beat.members);
        beat.looking
    }

    pub(super) fn confirm(&mut self, at: Moment) -> SessionEvent {
        if self.beat.take_if(|beat| beat.at == at).is_none() {
            return SessionEvent::Nothing;
        }
        self.since = at;
        self.next_beat = at.after(self.ttl / 3);
        SessionEvent::Confirmed
    }

    pub(super) fn fail(&mut self, now: Moment, why: Cause) -> SessionEvent {
        self.beat = None;
        self.next_beat = now.after(self.ttl / 20);
        SessionEvent::Failed(Trouble::NotNow(why))
    }
}
