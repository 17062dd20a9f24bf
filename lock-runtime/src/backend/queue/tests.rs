//! Every order in which answers, pushes and failures can come in, by hand.

mod chains;
mod downgrading;
mod endings;
mod failures;
mod forbidden;
mod grants;
mod held;
mod issuing;
mod waiters;

use std::sync::Arc;
use std::time::Duration;

use super::Rules;
use crate::backend::queue::protocol::ahead::Ahead;
use crate::backend::queue::protocol::message::{Grant, Message};
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::queue::protocol::step::Step;
use crate::backend::queue::protocol::trouble::{ServerSaid, Trouble};
use crate::backend::queue::protocol::{call, reply};
use crate::backend::token::Token;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::crowd::Crowd;
use crate::types::key::LockKey;
use crate::types::terms::{LeaseId, Terms, Wait};

type Queue = super::Queue<()>;
type Call = call::Call<()>;
type Sent = call::Sent<()>;
type Reply = reply::Reply<()>;

impl<S: Step> super::Queue<S> {
    /// Whether one of its claims has this token.
    pub(crate) fn knows(&self, token: Token) -> bool {
        self.ids.contains_key(&token)
    }
}

/// No call but those of claims is made here.
impl Step for () {
    type Answer = ();
    type Route = ();

    fn may_grant(&self) -> Option<&LockKey> {
        None
    }

    fn key(&self) -> Option<&LockKey> {
        None
    }
}

const ID: LeaseId = LeaseId(7);
const TTL: Duration = Duration::from_secs(10);

/// A queue, and what a server and a driver would see of it.
struct Peer {
    queue: Queue,
    now: Moment,
}

impl Peer {
    fn connected() -> Self {
        let mut peer = Self {
            queue: Queue::new(Rules::default()),
            now: Moment::from_nanos(1),
        };
        peer.queue.connected(peer.now);
        peer
    }

    /// With one acquisition asked for, whose call is on the way.
    fn acquiring(wait: Wait) -> (Self, Sent) {
        let mut peer = Self::connected();
        let terms = Terms {
            wait,
            ..Terms::of(ID, "k", TTL)
        };
        peer.queue
            .submit(peer.now, Request::Acquire(Arc::new(terms)));
        let sent = peer.call();
        assert!(matches!(sent.call, Call::Acquire { position: None, .. }));
        (peer, sent)
    }

    /// With one acquisition in the queue.
    fn waiting() -> (Self, Token) {
        let (mut peer, sent) = Self::acquiring(Wait::Forever);
        let token = token(&sent);
        peer.reply(
            sent,
            Reply::Waiting {
                position: 5,
                ahead: ahead(8_000),
            },
        );
        assert!(matches!(
            peer.outcome(),
            Some(Outcome::Waiting { id: ID, .. })
        ));
        (peer, token)
    }

    fn after(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
        self.queue.tick(self.now);
    }

    /// The one call that the queue wants sent.
    fn call(&mut self) -> Sent {
        let mut calls = self.queue.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0)
    }

    fn silent(&mut self) {
        let calls = self.queue.calls();
        assert!(calls.is_empty(), "{calls:?}");
    }

    fn reply(&mut self, sent: Sent, reply: Reply) {
        self.queue.replied(self.now, sent, Ok(reply));
    }

    fn fail(&mut self, sent: Sent, trouble: Trouble) {
        self.queue.replied(self.now, sent, Err(trouble));
    }

    fn push(&mut self, token: Token, fence: u64) {
        let (owner, name) = ("lock:{k}".into(), token.to_string().into());
        let grant = Grant {
            token,
            fence,
            owner,
            name,
            followers: Vec::new(),
        };
        self.queue.heard(self.now, Message::Granted(grant));
    }

    fn lose_connection(&mut self, in_flight: Vec<Sent>) {
        for sent in in_flight {
            self.fail(sent, cut());
        }
        self.queue.disconnected(cut());
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.queue.next_outcome()
    }

    fn granted(&mut self) -> (u64, Moment) {
        match self.outcome() {
            Some(Outcome::Granted {
                id: ID,
                fence,
                since,
                ..
            }) => (fence, since),
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Skips outcomes that end nothing.
    fn end(&mut self) -> Option<Outcome> {
        loop {
            match self.outcome() {
                Some(Outcome::Trouble { .. } | Outcome::Waiting { .. }) => {}
                other => return other,
            }
        }
    }
}

/// With the lock held.
fn holding() -> (Peer, Token) {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    let who = token(&sent);
    peer.reply(sent, Reply::Granted { fence: 3 });
    peer.granted();
    (peer, who)
}

fn token(sent: &Sent) -> Token {
    match &sent.call {
        Call::Acquire { bearer, .. }
        | Call::Renew { bearer, .. }
        | Call::Pass { bearer, .. }
        | Call::Raise { bearer, .. }
        | Call::Release { bearer, .. }
        | Call::Issue { bearer, .. }
        | Call::Shorten { bearer, .. }
        | Call::Downgrade(bearer)
        | Call::Leave(bearer) => bearer.token,
        Call::Ask(bearers) => bearers[0].token,
        Call::Disown(grant) => grant.token,
        Call::Step(()) | Call::Report { .. } => {
            panic!("{sent:?} is about no acquisition")
        }
    }
}

fn ahead(left_ms: u64) -> Ahead {
    Ahead {
        owner: "token 7@host".into(),
        left: Some(Duration::from_millis(left_ms)),
        crowd: Crowd::default(),
        before: Some(0),
    }
}

fn asked(standing: Standing) -> Reply {
    Reply::Asked {
        ahead: ahead(8_000),
        standings: vec![standing],
    }
}

fn forbidden() -> Trouble {
    Trouble::Never(Arc::new(ServerSaid("NOPERM".into())))
}

fn busy() -> Trouble {
    Trouble::NotNow(Arc::new(ServerSaid("BUSY".into())))
}

fn cut() -> Trouble {
    Trouble::Unknown(Arc::new(ServerSaid("cut".into())))
}
