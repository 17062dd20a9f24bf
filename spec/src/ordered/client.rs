//! A client with its session, its connection and one acquisition.

use super::store::{Entry, Id, Message, Request};
use super::{Bug, MARGIN, SESSION, Scenario};

/// A connection, and what is on its way.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Link {
    /// Whether the client is disconnected.
    pub down: bool,
    /// Whether its process is stopped.
    pub stopped: bool,
    /// Whether it leads to the server that is cut off.
    pub cut_off: bool,
    /// Whether a request has been unanswered for a tick.
    pub silent: bool,
    /// What no server has carried out.
    pub requests: Vec<Request>,
    /// What the client has not read.
    pub messages: Vec<Message>,
    /// Requests of an earlier connection, which may still be carried out.
    pub late: Vec<Request>,
}

/// Where the acquisition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It has not begun.
    New,
    /// It has no session.
    Opening(bool),
    /// It makes its entry.
    Creating(bool),
    /// It does not know whether it has made its entry, and writes the marker.
    Marking(bool),
    /// It reads who is ahead: from any server, or from the majority.
    Looking {
        /// Whether the answer is due.
        sent: bool,
        /// Whether the majority answers.
        linear: bool,
    },
    /// It watches an entry ahead.
    Watching {
        /// The revision of that entry.
        ahead: u8,
        /// Whether no other is ahead.
        alone: bool,
        /// The revision of its last read.
        read: u8,
        /// Whether it was sent.
        sent: bool,
    },
    /// Its body runs.
    Held {
        /// The fence with which it began.
        fence: u8,
    },
    /// It gives up, and does not know whether it has made its entry: it writes the marker.
    Clearing(bool),
    /// It deletes its entry.
    Leaving(bool),
    /// It has ended.
    Done,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// Its acquisition in its session.
    pub id: Id,
    /// The ticks until the deadline of its session.
    pub left: u8,
    /// The ticks since the heartbeat was sent whose answer is due.
    pub beating: Option<u8>,
    /// Its latest marker.
    pub marker: u8,
    /// Where its acquisition is.
    pub stage: Stage,
    /// Its connection.
    pub link: Link,
}

impl Client {
    /// The client of this number, which has not begun.
    pub fn new(client: u8) -> Self {
        let id = Id { client, session: 0 };
        Self {
            id,
            left: 0,
            beating: None,
            marker: 0,
            stage: Stage::New,
            link: Link::default(),
        }
    }

    /// Whether the next turn of the executor polls its body.
    pub fn is_polled(&self, scenario: &Scenario) -> bool {
        let in_time = self.left > 0 || scenario.breaks(Bug::PolledWithoutALook);
        matches!(self.stage, Stage::Held { .. }) && in_time && !self.link.stopped
    }

    /// Whether it waits for the lock.
    pub fn waits(&self) -> bool {
        matches!(
            self.stage,
            Stage::Opening(_)
                | Stage::Creating(_)
                | Stage::Marking(_)
                | Stage::Looking { .. }
                | Stage::Watching { .. }
        )
    }

    /// What it sends next: a heartbeat at a third of the session's time, and the next call of the acquisition.
    pub fn next_call(&self, scenario: &Scenario) -> Option<Request> {
        let id = self.id;
        let has_session = !matches!(self.stage, Stage::New | Stage::Opening(_) | Stage::Done);
        if has_session && self.beating.is_none() && self.left + MARGIN < SESSION {
            return Some(Request::Beat(id));
        }
        match self.stage {
            Stage::Opening(false) => Some(Request::Open(id)),
            Stage::Creating(false) => Some(Request::Create(id, self.marker)),
            // A create without an answer: the first fails at its compare if it arrives late.
            Stage::Marking(false) if scenario.breaks(Bug::CreateSentAgain) => {
                Some(Request::Create(id, self.marker))
            }
            Stage::Marking(false) | Stage::Clearing(false) => {
                Some(Request::Mark(id, self.marker + 1))
            }
            Stage::Looking {
                sent: false,
                linear,
            } if self.left > 0 => Some(Request::Look(id, linear)),
            Stage::Watching {
                sent: false, ahead, ..
            } => Some(Request::Watch(id, ahead)),
            Stage::Leaving(false) => Some(Request::Delete(id)),
            _ => None,
        }
    }

    /// Notes that this was sent.
    pub fn sent(&mut self, request: Request) {
        if let Request::Beat(_) = request {
            self.beating = Some(0);
            return;
        }
        if let Request::Open(_) = request {
            self.beating = Some(0);
        }
        if let Request::Mark(_, marker) = request {
            self.marker = marker;
        }
        match &mut self.stage {
            Stage::Opening(sent)
            | Stage::Creating(sent)
            | Stage::Marking(sent)
            | Stage::Clearing(sent)
            | Stage::Looking { sent, .. }
            | Stage::Watching { sent, .. }
            | Stage::Leaving(sent) => *sent = true,
            Stage::New | Stage::Held { .. } | Stage::Done => {}
        }
    }

    /// Begins again with a session of its own number, at the end of the queue.
    fn start_over(&mut self) {
        self.id.session += 1;
        self.left = 0;
        self.beating = None;
        self.marker = 0;
        self.stage = Stage::Opening(false);
    }

    /// Hears a message.
    pub fn heard(&mut self, scenario: &Scenario, message: &Message) {
        match (message, self.stage) {
            (Message::Opened(id), Stage::Opening(true)) if *id == self.id => {
                self.confirmed(scenario);
                self.stage = Stage::Creating(false);
            }
            (Message::Beaten(id, true), _) if *id == self.id => self.confirmed(scenario),
            (Message::Beaten(id, false) | Message::Marked(id, false), _) if *id == self.id => {
                self.ended();
            }
            (Message::Marked(id, true), Stage::Marking(true)) if *id == self.id => {
                self.stage = Stage::Looking {
                    sent: false,
                    linear: true,
                };
            }
            (Message::Marked(id, true), Stage::Clearing(true)) if *id == self.id => {
                self.stage = Stage::Leaving(false);
            }
            (
                Message::Seen(id, own, ahead, read),
                Stage::Creating(true) | Stage::Marking(true) | Stage::Looking { sent: true, .. },
            ) if *id == self.id => {
                self.saw(scenario, *own, ahead, *read);
            }
            (
                Message::Watched(id, now),
                Stage::Watching {
                    read, sent: true, ..
                },
            ) if *id == self.id
                // A watch from now on misses what came before it.
                && *now > read && !scenario.breaks(Bug::WatchTrusted) =>
            {
                self.stage = Stage::Looking {
                    sent: false,
                    linear: false,
                };
            }
            (Message::Deleted(revision, at), Stage::Watching { ahead, alone, .. })
                if *revision == ahead =>
            {
                // If exactly one entry was ahead at the last read, its deletion is proof that nobody is ahead.
                let proof = alone || scenario.breaks(Bug::OneDeletionIsProof);
                self.stage = if proof && self.left > 0 {
                    Stage::Held { fence: *at }
                } else {
                    Stage::Looking {
                        sent: false,
                        linear: false,
                    }
                };
            }
            (Message::Left(id), Stage::Leaving(true)) if *id == self.id => self.stage = Stage::Done,
            _ => {}
        }
    }

    /// A session is as old as the last write that a majority has confirmed, from the moment at which it was sent.
    fn confirmed(&mut self, scenario: &Scenario) {
        let age = if scenario.breaks(Bug::CountedFromTheAnswer) {
            0
        } else {
            self.beating.unwrap_or(SESSION)
        };
        let left = (SESSION - MARGIN).saturating_sub(age);
        let has_passed = matches!(self.stage, Stage::Held { .. }) && self.left == 0;
        self.left = if has_passed { 0 } else { left.max(self.left) };
        self.beating = None;
    }

    /// The session has ended: what was held is lost, and who waited joins again.
    fn ended(&mut self) {
        match self.stage {
            Stage::Held { .. } | Stage::Clearing(_) | Stage::Leaving(_) => self.stage = Stage::Done,
            Stage::New | Stage::Opening(_) | Stage::Done => {}
            _ => self.start_over(),
        }
    }

    /// Reads who is ahead.
    fn saw(&mut self, scenario: &Scenario, own: Option<Entry>, ahead: &[u8], read: u8) {
        let Some(own) = own else {
            return self.missed(scenario, read);
        };
        let fence = if scenario.breaks(Bug::NumbersBeginAgain) {
            own.number + 1
        } else {
            read
        };
        self.stage = match ahead {
            [] if self.left > 0 => Stage::Held { fence },
            [] => Stage::Looking {
                sent: false,
                linear: false,
            },
            [.., last] => Stage::Watching {
                ahead: *last,
                alone: ahead.len() == 1,
                read,
                sent: false,
            },
        };
    }

    /// The own entry was not there: the majority has to say so.
    fn missed(&mut self, scenario: &Scenario, read: u8) {
        self.stage = match self.stage {
            Stage::Looking { .. } if scenario.breaks(Bug::OwnEntryNotLookedFor) => {
                Stage::Held { fence: read }
            }
            Stage::Looking { linear: false, .. } => Stage::Looking {
                sent: false,
                linear: true,
            },
            Stage::Looking { linear: true, .. } => Stage::Creating(false),
            // The create was refused: the session has ended, or the marker is another.
            _ => return self.start_over(),
        };
    }

    /// The connection has broken.
    pub fn disconnected(&mut self) {
        self.beating = None;
        self.stage = match self.stage {
            Stage::Opening(true) => return self.start_over(),
            Stage::Creating(true) | Stage::Marking(_) => Stage::Marking(false),
            Stage::Looking { linear, .. } => Stage::Looking {
                sent: false,
                linear,
            },
            Stage::Watching { .. } => Stage::Looking {
                sent: false,
                linear: false,
            },
            Stage::Clearing(_) => Stage::Clearing(false),
            Stage::Leaving(_) => Stage::Leaving(false),
            other => other,
        };
    }

    /// The body returns, or its deadline has passed.
    pub fn leave(&mut self, scenario: &Scenario) {
        self.stage = match self.stage {
            Stage::Opening(_) | Stage::Creating(false) => Stage::Done,
            // docs/etcd.md, lost answers: a create that arrives after the deletion would make an entry that stays.
            Stage::Creating(true) | Stage::Marking(_)
                if !scenario.breaks(Bug::UnwantedEntryStays) =>
            {
                Stage::Clearing(false)
            }
            _ => Stage::Leaving(false),
        };
    }
}
