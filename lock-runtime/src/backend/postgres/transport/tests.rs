//! A link against servers that answer as a test says.

mod server;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use self::server::{Pretender, Says};
use super::dialer::Dialer;
use super::link::{Link, LinkEvent};
use super::server::Server;
use crate::backend::postgres::address::Address;
use crate::backend::postgres::protocol::answer::Answer;
use crate::backend::postgres::protocol::call::Call;
use crate::backend::postgres::protocol::schema::Schema;
use crate::backend::postgres::protocol::statement::Statement;
use crate::backend::setup::Setup;
use crate::backend::sql::session::Session;
use crate::backend::sql::trouble::Trouble;
use crate::base::clock::{Clock, Sleep};
use crate::types::error::LockError;
use crate::types::url::Url;

const TIMEOUT: Duration = Duration::from_millis(200);

fn setup() -> Setup {
    Setup {
        prefix: "lock".into(),
        ttl: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        lazy: false,
        history: 0,
        pool_size: 1,
        replicas: 0,
        quarantine: None,
        clock: Clock::machine(),
        credentials: None,
        #[cfg(feature = "tls")]
        tls: None,
    }
}

/// A link whose calls are told apart by numbers.
struct Linked {
    link: Link<usize>,
    session: Session,
    clock: Clock,
    sleep: Sleep,
}

impl Linked {
    /// To these servers.
    fn to(servers: &[&Pretender], parameters: &str) -> Self {
        let hosts: Vec<_> = servers.iter().map(|it| it.address.to_string()).collect();
        let url = format!("postgres://me@{}/shop?{parameters}", hosts.join(","));
        let address = Address::parse(&mut Url::parse(&url).expect("a URL"));
        let schema = Schema {
            name: "lock_runtime".into(),
            version: 1,
            script: "INSTALL".into(),
        };
        let setup = setup();
        let dialer = Dialer::new(&address.expect("an address"), &setup, schema);
        let session = Session::new().expect("random numbers");
        Self {
            link: Link::new(0, dialer, session, setup.clock.now()),
            session,
            clock: setup.clock,
            sleep: Sleep::default(),
        }
    }

    async fn event(&mut self) -> LinkEvent<usize> {
        let Self {
            link, clock, sleep, ..
        } = self;
        let event = poll_fn(|cx| {
            loop {
                if let Some(event) = link.poll(cx, clock.now()) {
                    return Poll::Ready(event);
                }
                if sleep.poll_until(cx, clock, link.next_wakeup()).is_pending() {
                    return Poll::Pending;
                }
            }
        });
        let event = tokio::time::timeout(Duration::from_secs(10), event).await;
        event.expect("an event")
    }

    async fn opened(&mut self) -> Server {
        match self.event().await {
            LinkEvent::Opened(server) => server,
            event => panic!("{event:?}"),
        }
    }

    async fn failed(&mut self) -> LockError {
        match self.event().await {
            LinkEvent::Failed(trouble) => Trouble::into_error(trouble, &"the server".into()),
            event => panic!("{event:?}"),
        }
    }

    async fn answer(&mut self) -> (usize, Answer) {
        match self.event().await {
            LinkEvent::Answer(to, answer) => (to, answer),
            event => panic!("{event:?}"),
        }
    }

    /// The calls that were not answered.
    async fn broken(&mut self) -> Vec<usize> {
        match self.event().await {
            LinkEvent::Broken(_, unanswered) => unanswered,
            event => panic!("{event:?}"),
        }
    }

    /// Sends calls of these statements, numbered from 0.
    fn send(&mut self, texts: &[&'static str]) {
        let call = |text: &'static str| Call {
            statement: Arc::new(Statement::prepared(text, text.into(), &[])),
            args: Vec::new(),
            timeout: TIMEOUT,
        };
        let calls = texts.iter().enumerate().map(|(to, text)| (call(text), to));
        assert!(self.link.send(self.clock.now(), calls));
    }
}

#[tokio::test]
async fn each_call_gets_its_own_answer() {
    let server = Pretender::start(|text| match text {
        "BAD" => Says::Error("40001"),
        _ => Says::Row(vec!["1"]),
    });
    let mut linked = Linked::to(&[&server], "");
    linked.opened().await;
    linked.send(&["GOOD", "BAD", "GOOD"]);
    for number in 0..3 {
        let (to, answer) = linked.answer().await;
        assert_eq!((to, answer.result.is_ok()), (number, number != 1));
    }
    assert!(linked.link.is_quiet());
}

#[tokio::test]
async fn a_statement_that_the_server_has_forgotten_is_prepared_again() {
    let server = Pretender::start(|_| Says::Row(vec!["1"]));
    let mut linked = Linked::to(&[&server], "");
    linked.opened().await;
    server.take_seen();
    for text in ["A", "A", "FORGET", "A", "A"] {
        linked.send(&[text]);
        let (_, answer) = linked.answer().await;
        if answer.result.is_err() {
            linked.send(&[text]);
            assert!(linked.answer().await.1.result.is_ok());
        }
    }
    let seen = server.take_seen();
    let seen: Vec<_> = seen.iter().map(String::as_str).collect();
    let expected = [
        "CPBES A",
        "BES A",
        "CPBES FORGET",
        "BES -",
        "CPBES A",
        "BES A",
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn nothing_is_kept_on_a_connection_behind_a_pooler() {
    let server = Pretender::start(|_| Says::Row(vec!["1"]));
    server.own(|it| it.process = 7);
    let mut linked = Linked::to(&[&server], "");
    let opened = linked.opened().await;
    assert!(opened.is_pooled && !opened.listens && opened.session == linked.session);
    linked.send(&["A"]);
    linked.answer().await;
    linked.send(&["A"]);
    linked.answer().await;
    let seen = server.take_seen();
    assert!(
        !seen
            .iter()
            .any(|it| it.contains("set_config") || it.contains("advisory"))
    );
    assert_eq!(seen[seen.len() - 2..], ["PBES A", "PBES A"]);
}

/// When a client disconnects, a pooler may give the answers to its other calls to the next client.
#[tokio::test]
async fn behind_a_pooler_one_call_is_in_flight() {
    let server = Pretender::start(|text| match text {
        "LAST" => Says::Nothing,
        _ => Says::Row(vec!["1"]),
    });
    server.own(|it| it.process = 7);
    let mut linked = Linked::to(&[&server], "");
    linked.opened().await;
    server.take_seen();
    linked.send(&["A", "LAST", "NEVER"]);
    assert_eq!(linked.answer().await.0, 0);
    assert_eq!(linked.broken().await, [1, 2], "the server is silent");
    let seen = server.take_seen();
    assert_eq!(seen[..2], ["PBES A", "PBES LAST"]);
    assert!(!seen.iter().any(|it| it.contains("NEVER")), "{seen:?}");
}

#[tokio::test]
async fn an_answer_to_the_call_of_another_client_is_not_believed() {
    let server = Pretender::start(|_| Says::Foreign(vec!["granted", "5"]));
    server.own(|it| it.process = 7);
    let mut linked = Linked::to(&[&server], "");
    linked.opened().await;
    linked.send(&["A", "B"]);
    assert_eq!(linked.broken().await, [0, 1]);
}

#[tokio::test]
async fn a_pooler_of_sessions_may_notify() {
    let server = Pretender::start(|_| Says::Row(vec!["1"]));
    server.own(|it| it.process = 7);
    let opened = Linked::to(&[&server], "wake=listen").opened().await;
    assert!(opened.is_pooled && opened.listens);
    let seen = server.take_seen();
    assert!(seen.iter().any(|it| it.contains("pg_try_advisory_lock")));
}

#[tokio::test]
async fn a_server_that_only_reads_is_left_for_the_next_one() {
    let [first, second] = [Says::Error("25006"), Says::Row(vec!["1"])]
        .map(|says| Pretender::start(move |_| says.clone()));
    let mut linked = Linked::to(&[&first, &second], "");
    linked.opened().await;
    linked.send(&["WRITE", "WRITE"]);
    assert!(linked.answer().await.1.result.is_err());
    assert_eq!(linked.broken().await, [1]);
    linked.opened().await;
    linked.send(&["WRITE"]);
    assert!(linked.answer().await.1.result.is_ok());
}

#[tokio::test]
async fn what_a_connection_leaves_open_is_not_known() {
    for says in [Says::Fatal("57P01"), Says::Goodbye, Says::Nothing] {
        let server = Pretender::start(move |text| match text {
            "LAST" => says.clone(),
            _ => Says::Row(vec!["1"]),
        });
        let mut linked = Linked::to(&[&server], "");
        linked.opened().await;
        linked.send(&["FIRST", "LAST", "LATER"]);
        assert_eq!(linked.answer().await.0, 0);
        assert_eq!(linked.broken().await, [1, 2]);
        assert_eq!(linked.opened().await.session, linked.session);
    }
}

#[tokio::test]
async fn a_bell_that_stays_taken_leads_to_another_session() {
    let server = Pretender::start(|_| Says::Row(vec!["1"]));
    let mut linked = Linked::to(&[&server], "");
    let first = linked.session.token().to_string();
    server.own(move |it| it.taken = Some(first));
    assert_ne!(linked.opened().await.session, linked.session);
}

#[tokio::test]
async fn what_keeps_no_locks_is_refused_with_a_sentence() {
    type Own = fn(&mut server::Own);
    let cases: [(Own, &str); 9] = [
        (
            |it| it.who = "CockroachDB CCL v23",
            "invalid url: the server is CockroachDB",
        ),
        (
            |it| it.who = "PostgreSQL 15.2-YB-2.25",
            "invalid url: the server is YugabyteDB",
        ),
        (
            |it| it.facts[3] = "130012",
            "invalid url: the server is PostgreSQL 13",
        ),
        (
            |it| it.facts[4] = "LATIN1",
            "invalid url: the database is encoded in LATIN1",
        ),
        (|it| it.facts[1] = "t", "the server is a standby"),
        (|it| it.facts[2] = "on", "the server only reads"),
        (|it| it.login = b"\0\0\0\x05salt", "MD5"),
        (|it| it.login = b"\0\0\0\x03", "not encrypted"),
        (|it| it.login = b"\0\0\0\x07", "SCRAM-SHA-256"),
    ];
    for (own, says) in cases {
        let server = Pretender::start(|_| Says::Row(vec!["1"]));
        server.own(own);
        let error = Linked::to(&[&server], "").failed().await.to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[tokio::test]
async fn a_role_behind_a_pooler_has_the_settings_that_locks_need() {
    for (column, value) in [(5, "serializable"), (6, "error")] {
        let server = Pretender::start(|_| Says::Row(vec!["1"]));
        server.own(move |it| it.facts[column] = value);
        Linked::to(&[&server], "").opened().await;
        server.own(|it| it.process = 7);
        let error = Linked::to(&[&server], "").failed().await.to_string();
        assert!(
            error.contains(value) && error.contains("ALTER ROLE"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_schema_that_is_missing_is_installed_where_that_is_allowed() {
    for (parameters, is_installed) in [("", true), ("install=never", false)] {
        let server = Pretender::start(|_| Says::Row(vec!["1"]));
        server.own(|it| it.schema = Says::Error("3F000"));
        let mut linked = Linked::to(&[&server], parameters);
        if is_installed {
            linked.opened().await;
        } else {
            let error = linked.failed().await.to_string();
            assert!(
                error.starts_with("invalid schema: ") && error.contains("lockctl sql"),
                "{error}"
            );
        }
        let seen = server.take_seen();
        assert_eq!(seen.iter().any(|it| it.contains("INSTALL")), is_installed);
    }
}
