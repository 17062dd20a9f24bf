//! Numbers that mean the same get the same digits: only the order of revisions and sessions matters.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};

use super::Scenario;
use super::client::{Client, Link, Stage};
use super::store::{Id, Message, Request};
use super::world::World;

impl World {
    /// Drops what nothing depends on any more, and gives the rest the smallest numbers that keep its order.
    pub fn canonicalize(&mut self, scenario: &Scenario) {
        self.forget_late_requests();
        self.forget_ended_clients();
        self.renumber_revisions();
        self.renumber_sessions();
        self.renumber_markers();
        if scenario.symmetric {
            self.renumber_clients();
        }
        self.store.watches.sort_unstable();
        self.store.watches.dedup();
        self.store.sessions.sort_unstable_by_key(|it| it.id);
    }

    /// What is late of a session that has ended is refused.
    fn forget_late_requests(&mut self) {
        let store = &self.store;
        for client in &mut self.clients {
            client.link.late.retain(|it| {
                let session = store.sessions.iter().find(|session| session.id == it.id());
                match it {
                    Request::Open(_) => true,
                    // A heartbeat that comes late only makes a session last longer.
                    Request::Look(..) | Request::Watch(..) | Request::Beat(_) => false,
                    Request::Create(_, marker) => session.is_some_and(|it| it.marker == *marker),
                    Request::Delete(id) => store.queue.iter().any(|it| it.id == *id),
                    Request::Mark(..) => session.is_some(),
                }
            });
        }
    }

    /// A client whose acquisition has ended keeps its session, which matters while an entry may be on it.
    fn forget_ended_clients(&mut self) {
        for client in &mut self.clients {
            if client.stage == Stage::Done {
                client
                    .link
                    .late
                    .retain(|it| matches!(it, Request::Create(..)));
                let late = std::mem::take(&mut client.link.late);
                let id = client.id;
                *client = Client {
                    id,
                    stage: Stage::Done,
                    ..Client::new(id.client)
                };
                client.link = Link {
                    late,
                    ..Link::default()
                };
                let queue = &self.store.queue;
                let is_idle =
                    client.link.late.is_empty() && queue.iter().all(|it| it.id.client != id.client);
                self.store
                    .sessions
                    .retain(|it| !is_idle || it.id.client != id.client);
            }
        }
    }

    fn renumber_revisions(&mut self) {
        let mut all = vec![0];
        self.each_revision(|it| all.push(*it));
        all.sort_unstable();
        all.dedup();
        self.each_revision(|it| *it = rank(&all, it));
    }

    fn each_revision(&mut self, mut see: impl FnMut(&mut u8)) {
        see(&mut self.store.revision);
        see(&mut self.begun);
        self.store
            .queue
            .iter_mut()
            .for_each(|it| see(&mut it.revision));
        if let Some((entries, revision)) = &mut self.store.cut_off {
            see(revision);
            for entry in entries {
                see(&mut entry.revision);
            }
        }
        self.store
            .watches
            .iter_mut()
            .for_each(|(_, revision)| see(revision));
        for client in &mut self.clients {
            match &mut client.stage {
                Stage::Watching { ahead, read, .. } => [ahead, read].into_iter().for_each(&mut see),
                Stage::Held { fence } => see(fence),
                _ => {}
            }
            for request in client.link.requests.iter_mut().chain(&mut client.link.late) {
                if let Request::Watch(_, revision) = request {
                    see(revision);
                }
            }
            for message in &mut client.link.messages {
                match message {
                    Message::Seen(_, own, ahead, read) => {
                        if let Some(own) = own {
                            see(&mut own.revision);
                        }
                        ahead.iter_mut().for_each(&mut see);
                        see(read);
                    }
                    Message::Watched(_, revision) => see(revision),
                    Message::Deleted(entry, at) => [entry, at].into_iter().for_each(&mut see),
                    _ => {}
                }
            }
        }
    }

    fn renumber_sessions(&mut self) {
        let mut all = Vec::new();
        self.each_id(|it| all.push(*it));
        all.sort_unstable();
        all.dedup();
        self.each_id(|it| {
            let first = all.partition_point(|other| other.client < it.client);
            it.session = rank(&all[first..], it);
        });
    }

    fn each_id(&mut self, mut see: impl FnMut(&mut Id)) {
        self.store.queue.iter_mut().for_each(|it| see(&mut it.id));
        self.store
            .cut_off
            .iter_mut()
            .flat_map(|(it, _)| it)
            .for_each(|it| see(&mut it.id));
        self.store
            .sessions
            .iter_mut()
            .for_each(|it| see(&mut it.id));
        for client in &mut self.clients {
            see(&mut client.id);
            for request in client.link.requests.iter_mut().chain(&mut client.link.late) {
                see(request.id_mut());
            }
            for message in &mut client.link.messages {
                match message {
                    Message::Seen(id, own, ..) => {
                        see(id);
                        if let Some(own) = own {
                            see(&mut own.id);
                        }
                    }
                    Message::Opened(id)
                    | Message::Beaten(id, _)
                    | Message::Marked(id, _)
                    | Message::Watched(id, _)
                    | Message::Left(id) => see(id),
                    Message::Deleted(..) => {}
                }
            }
        }
    }

    /// Markers of a session are compared with each other alone.
    fn renumber_markers(&mut self) {
        for number in 0..self.clients.len() {
            let id = self.clients[number].id;
            let mut all = vec![0];
            self.each_marker(id, |it| all.push(*it));
            all.sort_unstable();
            all.dedup();
            self.each_marker(id, |it| *it = rank(&all, it));
        }
    }

    fn each_marker(&mut self, id: Id, mut see: impl FnMut(&mut u8)) {
        self.store
            .sessions
            .iter_mut()
            .filter(|it| it.id == id)
            .for_each(|it| see(&mut it.marker));
        let client = &mut self.clients[usize::from(id.client)];
        see(&mut client.marker);
        for request in client.link.requests.iter_mut().chain(&mut client.link.late) {
            match request {
                Request::Create(it, marker) | Request::Mark(it, marker) if *it == id => see(marker),
                _ => {}
            }
        }
    }

    /// Clients that do the same things are in the order of what they are at.
    fn renumber_clients(&mut self) {
        let mut order: Vec<(u64, u8)> = (0u8..)
            .take(self.clients.len())
            .map(|it| (self.mark(it), it))
            .collect();
        order.sort_unstable();
        let new = |old: u8| {
            order
                .iter()
                .position(|(_, it)| *it == old)
                .map_or(old, index)
        };
        let mut clients = std::mem::take(&mut self.clients);
        clients.sort_by_key(|it| new(it.id.client));
        self.clients = clients;
        self.each_id(|it| it.client = new(it.client));
        self.store
            .watches
            .iter_mut()
            .for_each(|(watcher, _)| *watcher = new(*watcher));
    }

    /// What a client is at, without its number.
    fn mark(&self, number: u8) -> u64 {
        let client = &self.clients[usize::from(number)];
        let mut hasher = BuildHasherDefault::<DefaultHasher>::default().build_hasher();
        (
            client.left,
            client.beating,
            client.marker,
            client.stage,
            &client.link.late.len(),
        )
            .hash(&mut hasher);
        let link = &client.link;
        (
            link.down,
            link.stopped,
            link.cut_off,
            link.silent,
            link.requests.len(),
            link.messages.len(),
        )
            .hash(&mut hasher);
        for (place, entry) in self
            .store
            .queue
            .iter()
            .enumerate()
            .filter(|(_, it)| it.id.client == number)
        {
            (place, entry.id.session == client.id.session).hash(&mut hasher);
        }
        for session in self
            .store
            .sessions
            .iter()
            .filter(|it| it.id.client == number)
        {
            (session.left, session.marker).hash(&mut hasher);
        }
        let cut_off = self.store.cut_off.iter().flat_map(|(it, _)| it).enumerate();
        cut_off
            .filter(|(_, it)| it.id.client == number)
            .for_each(|(place, _)| place.hash(&mut hasher));
        hasher.finish()
    }
}

fn index(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// Which of the sorted values this is.
fn rank<T: Ord>(all: &[T], value: &T) -> u8 {
    u8::try_from(all.partition_point(|it| it < value)).unwrap_or(u8::MAX)
}
