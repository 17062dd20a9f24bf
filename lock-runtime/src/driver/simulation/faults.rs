//! What goes wrong in the simulation: connections break, processes stop and die.

use std::sync::Arc;
use std::time::Duration;

use super::{CLIENTS, Event, World};
use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::reply::{ServerSaid, Trouble};

impl World {
    pub(super) fn connect(&mut self, client: usize) {
        let it = &mut self.clients[client];
        if it.dead || it.up {
            return;
        }
        it.up = true;
        it.generation += 1;
        self.server.listeners.insert(client);
        let now = self.now;
        self.meet(client);
        self.clients[client].queue.connected(now);
        self.say(|| format!("client {client} connects"));
        self.turn(client);
    }

    pub(super) fn disconnect(&mut self, client: usize) {
        let it = &mut self.clients[client];
        if !it.up {
            return;
        }
        it.up = false;
        let now = self.now;
        let generation = it.generation;
        self.server.listeners.remove(&client);
        self.say(|| format!("client {client} loses its connection"));
        let mut lost = self.cut(client, generation);
        let trouble = Trouble::Unknown(Arc::new(ServerSaid("cut".into())));
        let it = &mut self.clients[client];
        lost.extend(it.queue.calls());
        for sent in lost {
            it.queue.replied(now, sent, Err(trouble.clone()));
        }
        it.queue.disconnected(trouble);
        let delay = Duration::from_millis(self.rng.u64(1..2000));
        self.after(delay, Event::Connect(client));
        self.turn(client);
    }

    /// Takes what travels over a connection off the wire. Some requests come
    /// through all the same, late; nobody hears the answers.
    fn cut(&mut self, client: usize, generation: u64) -> Vec<Sent> {
        let travels = |event: &Event| event.connection() == Some((client, generation));
        let pending = self.pending.iter();
        let mut numbers: Vec<_> = pending
            .filter(|(_, event)| travels(event))
            .map(|(number, _)| *number)
            .collect();
        numbers.sort_unstable();
        let mut lost = Vec::new();
        for number in numbers {
            match self.pending.remove(&number) {
                Some(Event::Answer { sent, .. }) => lost.push(sent),
                Some(Event::Request { sent, .. }) => {
                    if self.rng.u8(..) < 40 {
                        let (call, at) = (sent.call.clone(), sent.at);
                        let late = Event::Request {
                            client,
                            generation,
                            sent: Sent::new(call, at),
                        };
                        let delay = Duration::from_millis(self.rng.u64(1..3000));
                        self.after(delay, late);
                    }
                    lost.push(sent);
                }
                _ => {}
            }
        }
        lost
    }

    pub(super) fn fault(&mut self) {
        if !self.faulty() {
            return;
        }
        let client = self.rng.usize(..CLIENTS);
        match self.rng.u8(..8) {
            0..3 => self.disconnect(client),
            3..6 => {
                let pause = Duration::from_millis(self.rng.u64(1..12_000));
                self.say(|| format!("client {client} stops for {pause:?}"));
                self.clients[client].paused_until = self.now.after(pause);
                self.after(pause, Event::Wake(client));
            }
            6 if self.clients.iter().filter(|it| !it.dead).count() > 2 => {
                self.say(|| format!("client {client} dies"));
                self.disconnect(client);
                self.clients[client].die();
            }
            7 => self.fail_over(),
            _ => {}
        }
        let pause = Duration::from_millis(self.rng.u64(10..1500));
        self.after(pause, Event::Fault);
    }
}

impl Event {
    /// The connection over which a call or its answer travels. Messages that
    /// were published may still be heard.
    fn connection(&self) -> Option<(usize, u64)> {
        match self {
            Self::Request {
                client, generation, ..
            }
            | Self::Answer {
                client, generation, ..
            } => Some((*client, *generation)),
            _ => None,
        }
    }
}
