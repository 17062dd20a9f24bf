//! A lock is handed to several of one connection at once, where they wait beside each other.
//!
//! Section: guarantees.md#a-lock-passes-through-a-process-without-the-server

use std::time::Duration;

use redis::{AsyncConnectionConfig, PushInfo, PushKind, aio::MultiplexedConnection};
use tests::{Peer, RedisServer, Step, TIME_LIMIT, token, within};
use tokio::sync::mpsc;

const TTL: u32 = 60_000;

/// What is said to a peer.
struct Messages {
    pushes: mpsc::UnboundedReceiver<PushInfo>,
    // Closed, it would end the subscription.
    _connection: MultiplexedConnection,
}

async fn listen(server: &RedisServer, peer: &Peer) -> Messages {
    let (sender, pushes) = mpsc::unbounded_channel();
    let url = format!("{}?protocol=resp3", server.url());
    let client = redis::Client::open(url).expect("an address");
    let config = AsyncConnectionConfig::new().set_push_sender(sender);
    let opening = client.get_multiplexed_async_connection_with_config(&config);
    let mut connection = opening.await.expect("a connection");
    let subscribed = connection.subscribe(&peer.channel).await;
    subscribed.expect("subscribed");
    Messages {
        pushes,
        _connection: connection,
    }
}

/// The next message: its fence, and the tokens of those who get the lock.
async fn message(messages: &mut Messages) -> (u64, Vec<String>) {
    let push = loop {
        let push = within(TIME_LIMIT, messages.pushes.recv()).await;
        let push = push.expect("the server is there");
        if push.kind == PushKind::Message {
            break push;
        }
    };
    let text: String = redis::from_redis_value(push.data[1].clone()).expect("text");
    let lines: Vec<_> = text.split('\n').map(str::to_owned).collect();
    (lines[0].parse().expect("a fence"), lines[2..].to_vec())
}

fn tokens(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(token).collect()
}

/// One who has taken the lock.
async fn holder(server: &RedisServer) -> Peer {
    let mut holder = Peer::new(server, "key", true).await;
    holder.open().await;
    holder.acquire(1, TTL, true).await;
    holder
}

/// Queues a token, behind all others by more than the window.
async fn join(peer: &mut Peer, number: u32, ttl: u32) {
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(peer.acquire(number, ttl, true).await[1], "waiting");
}

/// Queues several tokens.
async fn join_each(peer: &mut Peer, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        join(peer, number, TTL).await;
    }
}

/// Which part of a script hands the lock over.
#[derive(Clone, Copy, Debug)]
enum By {
    Release,
    Question,
    Try,
}

impl By {
    async fn hand_over(self, server: &RedisServer, holder: &mut Peer, waiter: &mut Peer) {
        let owner = RedisServer::owner_key(&holder.lock);
        match self {
            Self::Release => assert!(holder.release(1).await),
            Self::Question => {
                server.cmd(&["DEL", &owner]).await;
                waiter.ask(99, TTL).await;
            }
            Self::Try => {
                server.cmd(&["DEL", &owner]).await;
                waiter.acquire(98, TTL, false).await;
            }
        }
    }
}

#[tokio::test]
async fn neighbours_in_the_queue_are_handed_it_together() {
    for by in [By::Release, By::Question, By::Try] {
        let server = RedisServer::start().await;
        let mut holder = holder(&server).await;
        let mut peer = Peer::new(&server, "key", true).await.of_kind("x+");
        let mut other = Peer::new(&server, "key", true).await.of_kind("x+");
        let mut messages = listen(&server, &peer).await;
        join_each(&mut peer, 2..=4).await;
        join(&mut other, 5, TTL).await;
        join(&mut peer, 6, TTL).await;
        by.hand_over(&server, &mut holder, &mut peer).await;
        let (fence, names) = message(&mut messages).await;
        assert_eq!(names, tokens(2..=4), "{by:?}");
        assert_eq!(server.waiting("key").await, 2, "{by:?}");
        assert_eq!(holder.holder().await, Some(token(2)));
        assert!(
            holder.ttl().await <= 3_000,
            "a grant has to be claimed soon"
        );

        // Each of them has a number of its own, and the next acquisition a larger one.
        let counter: u64 = holder.cmd(&["GET", RedisServer::FENCE_KEY]).await;
        assert!(counter >= fence + 2, "{counter} after {fence}, {by:?}");
        assert!(peer.release(2).await);
        let later: u64 = holder.cmd(&["GET", RedisServer::FENCE_KEY]).await;
        assert!(later > fence + 2);
        assert_eq!(holder.holder().await, Some(token(5)));
    }
}

#[tokio::test]
async fn who_does_not_say_that_more_wait_is_granted_alone() {
    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await;
    let mut messages = listen(&server, &peer).await;
    join_each(&mut peer, 2..=4).await;
    holder.release(1).await;
    assert_eq!(message(&mut messages).await.1, tokens([2]));
    assert_eq!(server.waiting("key").await, 2);
}

#[tokio::test]
async fn who_wants_to_be_granted_alone_is() {
    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await.of_kind("x+");
    let mut messages = listen(&server, &peer).await;
    for number in 2..=7 {
        let kind = if matches!(number, 4 | 5) { "x-" } else { "x+" };
        kind.clone_into(&mut peer.kind);
        join(&mut peer, number, TTL).await;
    }
    holder.release(1).await;
    for names in [2..=3, 4..=4, 5..=5, 6..=7] {
        assert_eq!(message(&mut messages).await.1, tokens(names.clone()));
        assert!(peer.release(*names.start()).await);
    }
    assert_eq!(server.traces("key").await, [""; 0]);
}

#[tokio::test]
async fn another_lease_or_another_kind_is_not_handed_it_with_them() {
    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await.of_kind("x+");
    let mut messages = listen(&server, &peer).await;
    join(&mut peer, 2, TTL).await;
    join(&mut peer, 3, TTL).await;
    join(&mut peer, 4, TTL / 2).await;
    "r".clone_into(&mut peer.kind);
    join(&mut peer, 5, TTL / 2).await;
    "x+".clone_into(&mut peer.kind);
    join(&mut peer, 6, TTL / 2).await;
    holder.release(1).await;
    for names in [2..=3, 4..=4, 5..=5, 6..=6] {
        assert_eq!(message(&mut messages).await.1, tokens(names.clone()));
        let kind = if *names.start() == 5 { "r" } else { "x+" };
        kind.clone_into(&mut peer.kind);
        assert!(peer.release(*names.start()).await);
    }
}

// Section: guarantees.md#first-come-first-served
#[tokio::test]
async fn nobody_is_overtaken_by_who_joined_more_than_a_millisecond_later() {
    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await.of_kind("x+");
    let mut other = Peer::new(&server, "key", true).await;
    let mut messages = listen(&server, &peer).await;
    join(&mut peer, 2, TTL).await;
    join(&mut other, 3, TTL).await;
    let queue = RedisServer::queue_key("key");
    let position: f64 = holder.cmd(&["ZSCORE", &queue, &other.member(3, TTL)]).await;
    for (number, later) in [(4, 900.0), (5, 1_000.0), (6, 1_001.0), (7, 5_000.0)] {
        join(&mut peer, number, TTL).await;
        let position = format!("{:.0}", position + later);
        let _: i64 = holder
            .cmd(&["ZADD", &queue, &position, &peer.member(number, TTL)])
            .await;
    }
    holder.release(1).await;
    assert_eq!(message(&mut messages).await.1, tokens([2, 4, 5]));
    peer.release(2).await;
    assert_eq!(holder.holder().await, Some(token(3)));
}

#[tokio::test]
async fn no_more_than_sixty_four_are_handed_it_together() {
    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await;
    let mut messages = listen(&server, &peer).await;
    let calls: Vec<_> = (2..=101).map(|it| ("key", Step::Join(it, TTL))).collect();
    peer.many(&calls).await;
    holder.release(1).await;
    let (fence, names) = message(&mut messages).await;
    assert_eq!(names, tokens(2..=65));
    assert_eq!(server.waiting("key").await, 36);
    peer.release(2).await;
    let (next, names) = message(&mut messages).await;
    assert_eq!(names, tokens(66..=101));
    assert_eq!(next, fence + 64);
}

/// A queue is read in parts; behind a waiter that is left out, no further than to the first that joined too late.
#[tokio::test]
async fn who_follows_is_the_same_wherever_one_is_left_out() {
    const START: u64 = 1_800_000_000_000_000;

    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await;
    let mut messages = listen(&server, &peer).await;
    let queue = RedisServer::queue_key("key");
    // The first is 2, of those behind it 63 are looked at, and one joins every 100 us.
    for left_out in [3, 4, 9, 10, 11, 54, 55, 64, 65, 66] {
        let calls: Vec<_> = (2..=70).map(|it| ("key", Step::Join(it, TTL))).collect();
        peer.many(&calls).await;
        for number in 2..=70 {
            let alone = if number == left_out { ".5" } else { "" };
            let position = format!("{}{alone}", START + 100 * u64::from(number));
            let _: i64 = holder
                .cmd(&["ZADD", &queue, &position, &peer.member(number, TTL)])
                .await;
        }
        assert!(holder.release(1).await);
        let expected = (2..=65).filter(|it| *it != left_out && *it <= left_out + 10);
        let (_, names) = message(&mut messages).await;
        assert_eq!(names, tokens(expected), "{left_out} is left out");

        server
            .cmd(&["DEL", &queue, &RedisServer::owner_key("key")])
            .await;
        holder.acquire(1, TTL, true).await;
    }
}

#[tokio::test]
async fn who_is_taken_out_of_the_queue_by_a_question_still_waits() {
    let server = RedisServer::start().await;
    let _holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await.of_kind("x+");
    join_each(&mut peer, 2..=4).await;
    server.cmd(&["DEL", &RedisServer::owner_key("key")]).await;
    assert_eq!(peer.ask(4, TTL).await, "waiting");
    assert_eq!(peer.ask(4, TTL).await, "gone", "it has left the queue");

    // The same, by one that joins.
    join(&mut peer, 5, TTL).await;
    server.cmd(&["DEL", &RedisServer::owner_key("key")]).await;
    assert_eq!(peer.acquire(6, TTL, true).await[1], "waiting");
    assert_eq!(peer.holder().await, Some(token(5)));
    assert_eq!(server.waiting("key").await, 0);
}

#[tokio::test]
async fn a_grant_that_nobody_hears_is_taken_back_from_all() {
    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut dead = Peer::new(&server, "key", false).await.of_kind("x+");
    let mut other = Peer::new(&server, "key", true).await;
    join_each(&mut dead, 2..=4).await;
    join(&mut other, 5, TTL).await;
    holder.release(1).await;
    assert_eq!(holder.holder().await, Some(token(5)));
    assert_eq!(server.waiting("key").await, 0);
}

#[tokio::test]
async fn a_counter_without_its_data_sets_numbers_aside_too() {
    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await.of_kind("x+");
    let mut messages = listen(&server, &peer).await;
    join_each(&mut peer, 2..=4).await;
    let raised: u64 = holder.cmd(&["GET", RedisServer::FENCE_KEY]).await;
    server.cmd(&["DEL", RedisServer::FENCE_KEY]).await;
    holder.release(1).await;
    let (fence, names) = message(&mut messages).await;
    assert!(fence > raised && names.len() == 3, "{fence}, {names:?}");
    let counter: u64 = holder.cmd(&["GET", RedisServer::FENCE_KEY]).await;
    assert_eq!(counter, fence + 2);
}

#[tokio::test]
async fn in_full_memory_a_release_hands_it_to_all_of_them() {
    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await.of_kind("x+");
    let mut messages = listen(&server, &peer).await;
    join_each(&mut peer, 2..=3).await;
    let _: () = holder.cmd(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert!(holder.release(1).await);
    assert_eq!(message(&mut messages).await.1, tokens(2..=3));
    assert!(peer.release(2).await);
}

#[tokio::test]
async fn what_joins_together_waits_as_if_it_had_come_alone() {
    let server = RedisServer::start().await;
    let mut holder = holder(&server).await;
    let mut peer = Peer::new(&server, "key", true).await;
    let calls = [2, 3, 4].map(|it| ("key", Step::Acquire(it, TTL)));
    let answers = peer.many(&calls).await;
    let mut positions = Vec::new();
    for (number, answer) in (2..).zip(answers) {
        let answer: Vec<String> = redis::from_redis_value(answer).expect("texts");
        assert_eq!(answer[..2], [token(number), "waiting".into()]);
        assert_eq!(answer[4], token(1));
        assert_eq!(answer[5], (number - 2).to_string(), "so many others");
        positions.push(answer[2].parse::<u64>().expect("a position"));
    }
    assert!(positions.is_sorted_by(|a, b| a < b), "{positions:?}");
    holder.release(1).await;
    for number in 2..=4 {
        assert_eq!(holder.holder().await, Some(token(number)));
        assert!(peer.release(number).await);
    }
    // The holder lets go in between: who comes after that stands behind.
    let calls = [
        ("key", Step::Acquire(5, TTL)),
        ("key", Step::Acquire(6, TTL)),
        ("key", Step::Release(5)),
        ("key", Step::Acquire(7, TTL)),
    ];
    let answers = peer.many(&calls).await;
    assert_eq!(holder.holder().await, Some(token(6)));
    let last: Vec<String> = redis::from_redis_value(answers[3].clone()).expect("texts");
    assert_eq!(last[4], token(6));
}

// Section: guarantees.md#a-lock-passes-through-a-process-without-the-server, protocol.md#chains
#[tokio::test]
async fn a_client_without_chains_takes_turns_with_one_that_has_them() {
    let server = RedisServer::start().await;
    let mut holder = Peer::new(&server, "key", true).await;
    let mut peer = Peer::new(&server, "key", true).await.of_kind("x-");
    let mut other = Peer::new(&server, "key", true).await;
    let mut messages = listen(&server, &peer).await;
    holder.open().await;
    other.acquire(1, TTL, true).await;
    join(&mut peer, 2, TTL).await;
    "x+".clone_into(&mut peer.kind);
    join_each(&mut peer, 3..=4).await;
    join_each(&mut other, 5..=6).await;
    assert!(other.release(1).await);
    assert_eq!(message(&mut messages).await.1, tokens([2]));
    assert!(peer.release(2).await);
    assert_eq!(message(&mut messages).await.1, tokens(3..=4));
    assert!(peer.renew(3, TTL).await);
    assert!(peer.release(3).await);
    for number in 5..=6 {
        assert_eq!(other.ask(number, TTL).await, "granted");
        assert!(other.renew(number, TTL).await);
        assert!(other.release(number).await);
    }
    assert_eq!(server.traces("key").await, [""; 0]);
}
