//! The store: what a majority of its servers has, and what the one that is cut off had.

use super::SESSION;
use crate::entries;

/// An acquisition, by its client and the number of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// The client.
    pub client: u8,
    /// Which of its sessions.
    pub session: u8,
}

/// An entry of the queue, which ends with its session.
pub type Entry = entries::Entry<u8, Id>;

/// A session: a lease of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// Whose it is.
    pub id: Id,
    /// The ticks until it ends.
    pub left: u8,
    /// What its client wrote last to be sure that no earlier create arrives any more.
    pub marker: u8,
}

/// The store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    /// The revision of the last write.
    pub revision: u8,
    /// The entries, in their order.
    pub queue: Vec<Entry>,
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Who watches the entry of which revision.
    pub watches: Vec<(u8, u8)>,
    /// The entries that a server had when it was cut off, and the revision of its last write.
    pub cut_off: Option<(Vec<Entry>, u8)>,
}

/// What a watch notices.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Whose watch it is.
    pub watcher: u8,
    /// The revision of the entry that was deleted.
    pub entry: u8,
    /// The revision of the deletion.
    pub at: u8,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Begins a session.
    Open(Id),
    /// Keeps the session.
    Beat(Id),
    /// Makes an entry, unless there is one or the marker is another.
    Create(Id, u8),
    /// Writes the marker: creates with an earlier one are refused.
    Mark(Id, u8),
    /// Reads the own entry and those ahead. A server may answer from what it has, or has to ask the majority.
    Look(Id, bool),
    /// Watches the entry of this revision.
    Watch(Id, u8),
    /// Deletes the entry.
    Delete(Id),
}

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The session has begun.
    Opened(Id),
    /// Whether the session lives.
    Beaten(Id, bool),
    /// The marker was written, or the session has ended.
    Marked(Id, bool),
    /// The own entry and those ahead, as of this revision; also the answer to a create.
    Seen(Id, Option<Entry>, Vec<u8>, u8),
    /// The watch begins at this revision.
    Watched(Id, u8),
    /// The entry of this revision was deleted, at that revision.
    Deleted(u8, u8),
    /// The own entry is not there any more.
    Left(Id),
}

impl Request {
    /// Whose it is.
    pub fn id(mut self) -> Id {
        *self.id_mut()
    }

    /// Whose it is.
    pub fn id_mut(&mut self) -> &mut Id {
        let (Self::Open(id)
        | Self::Beat(id)
        | Self::Create(id, _)
        | Self::Mark(id, _)
        | Self::Look(id, _)
        | Self::Watch(id, _)
        | Self::Delete(id)) = self;
        id
    }
}

impl Store {
    /// Carries out a request; what watchers hear is added to `events`.
    pub fn run(&mut self, request: Request, events: &mut Vec<Event>) -> Message {
        match request {
            Request::Open(id) => {
                self.sessions.push(Session {
                    id,
                    left: SESSION,
                    marker: 0,
                });
                Message::Opened(id)
            }
            Request::Beat(id) => {
                let session = self.sessions.iter_mut().find(|it| it.id == id);
                Message::Beaten(id, session.map(|it| it.left = SESSION).is_some())
            }
            Request::Create(id, marker) => self.create(id, marker),
            Request::Mark(id, marker) => {
                let session = self.sessions.iter_mut().find(|it| it.id == id);
                Message::Marked(id, session.map(|it| it.marker = marker).is_some())
            }
            Request::Look(id, _) => Self::look(&self.queue, id, self.revision),
            Request::Watch(id, revision) => {
                if self.queue.iter().any(|it| it.revision == revision) {
                    self.watches.push((id.client, revision));
                }
                Message::Watched(id, self.revision)
            }
            Request::Delete(id) => {
                self.delete(|it| it == id, events);
                Message::Left(id)
            }
        }
    }

    /// "It compares `create_revision` of the own key with 0, and `mod_revision` of the marker with what the client has
    /// written."
    fn create(&mut self, id: Id, marker: u8) -> Message {
        let lives = self
            .sessions
            .iter()
            .any(|it| it.id == id && it.marker == marker);
        if lives {
            self.revision += 1;
            entries::join(&mut self.queue, self.revision, id);
        }
        Self::look(&self.queue, id, self.revision)
    }

    /// The own entry, and those ahead of it.
    pub fn look(queue: &[Entry], id: Id, revision: u8) -> Message {
        let (own, ahead) = entries::look(queue, &id);
        Message::Seen(id, own.copied(), ahead, revision)
    }

    fn delete(&mut self, is_gone: impl Fn(Id) -> bool, events: &mut Vec<Event>) {
        for entry in entries::remove(&mut self.queue, |it| is_gone(*it)) {
            self.revision += 1;
            let watches = self
                .watches
                .iter()
                .filter(|(_, watched)| *watched == entry.revision);
            events.extend(watches.map(|(watcher, _)| Event {
                watcher: *watcher,
                entry: entry.revision,
                at: self.revision,
            }));
            self.watches
                .retain(|(_, watched)| *watched != entry.revision);
        }
    }

    /// Time passes: sessions end, and their entries with them.
    pub fn tick(&mut self, events: &mut Vec<Event>) {
        for session in &mut self.sessions {
            session.left -= 1;
        }
        let ended: Vec<Id> = self
            .sessions
            .iter()
            .filter(|it| it.left == 0)
            .map(|it| it.id)
            .collect();
        self.sessions.retain(|it| it.left > 0);
        self.delete(|it| ended.contains(&it), events);
    }
}
