//! The holders and waiters of a lock, from the server and from the holders' reports.

use std::time::{Duration, SystemTime};

use redis::Value;

use super::{Server, holder, mismatch};
use crate::backend::name;
use crate::backend::queue::protocol::kind;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::queue::reports::{Report, Reports};
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::protocol::reply::{number, text};
use crate::backend::token::Token;
use crate::types::error::Cause;
use crate::types::fence::FencingToken;
use crate::types::holder::{Status, Waiter};
use crate::types::key::LockKey;
use crate::types::kind::Kind;

/// How long holders have to report about their locks. A stopped holder does not; of it
/// only the entry on the server is known.
pub(super) const REPORT_TIMEOUT: Duration = Duration::from_millis(300);

impl<C: Copy> Server<C> {
    /// `reports` has those that arrive over the connection.
    pub(in crate::backend::redis) async fn status(
        self,
        key: LockKey,
        reports: Reports,
    ) -> Result<Status, Cause> {
        let known = self.ask(Inspect::Status(key.clone())).await?;
        let ends = self.clock.now().after(REPORT_TIMEOUT);
        let (mut status, tokens) = read(key, &known).ok_or_else(mismatch)?;
        if tokens.is_empty() {
            return Ok(status);
        }
        reports.want(&tokens);
        tokio::select! {
            biased;
            all = take_in(&mut status, &tokens, reports) => all?,
            Err(trouble) = self.ask(Inspect::Holders(tokens.clone())) => return Err(trouble.cause()),
            () = self.clock.sleep_until(ends) => note_silent(&mut status, &tokens),
        }
        if let [holder] = &mut status.holders[..]
            && holder.answers == Some(false)
            && holder.since.is_none()
        {
            holder.since = self.granted(&status.key, &holder.id).await;
        }
        Ok(status)
    }

    /// When an exclusive lock was granted, where each lock has a counter of its own: that is the
    /// server's time in microseconds at the last grant.
    async fn granted(&self, key: &LockKey, token: &str) -> Option<SystemTime> {
        if self.layout != Layout::Declared {
            return None;
        }
        let owner = self.ask(Inspect::Owner(key.clone()));
        let counter = self.ask(Inspect::Counter(key.clone()));
        // The last grant of a shared lock may have been another one.
        let is_owner = text(&owner.await.ok()?)?.starts_with(token);
        let micros = text(&counter.await.ok()?)?.parse().ok()?;
        is_owner.then(|| SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros)))?
    }
}

/// Notes who of those that were asked has not answered.
fn note_silent(status: &mut Status, asked: &[Token]) {
    for holder in &mut status.holders {
        let token = Token::parse(&holder.id);
        if holder.answers.is_none() && token.is_some_and(|it| asked.contains(&it)) {
            holder.answers = Some(false);
        }
    }
}

/// Takes in what holders report, until all have.
async fn take_in(
    status: &mut Status,
    asked: &[Token],
    mut reports: Reports,
) -> Result<(), Trouble> {
    let mut answered = 0;
    while answered < asked.len()
        && let Some(report) = reports.recv().await
    {
        answered += usize::from(note(status, &report?));
    }
    Ok(())
}

/// Whether it is the first report of a holder.
fn note(status: &mut Status, report: &Report) -> bool {
    let mut is_first = false;
    for holder in &mut status.holders {
        if Token::parse(&holder.id) == Some(report.token) {
            let is_new = holder.answers.is_none();
            is_first |= is_new;
            let nested = report.nested.iter().filter(|_| is_new);
            let followers =
                nested.map(|name| Waiter::new(name::holder(name, None), Kind::Exclusive, None));
            status.waiters.splice(0..0, followers);
            // They are out of the queue that the server keeps.
            status.waiting = status.waiting.saturating_add(report.followers);
            holder.answers = Some(true);
            holder.since = SystemTime::now().checked_sub(report.held);
            // With Redlock, it has none until a majority has granted the lock.
            if report.fence > 0 {
                holder.fencing_token = Some(FencingToken::new(report.fence));
            }
        }
    }
    is_first
}

/// The server's answer, and the tokens of the holders that can report more.
pub(super) fn read(key: LockKey, known: &Value) -> Option<(Status, Vec<Token>)> {
    let Value::Array(items) = known else {
        return None;
    };
    let [waiting, Value::Array(waiters), holders @ ..] = &items[..] else {
        return None;
    };
    let mut status = Status::free(key);
    status.waiting = usize::try_from(number(waiting)?).ok()?;
    let waiters = waiters.chunks_exact(3).map(read_waiter);
    status.waiters = waiters.collect::<Option<_>>()?;
    let mut tokens = Vec::new();
    let holders = holders.chunks_exact(3);
    let (kind, taken) = match holders.remainder() {
        [Value::Array(held)] => {
            let (kind, taken) = held.split_first()?;
            (kind::parse(&text(kind)?), taken)
        }
        // The setnx protocol has no other kind.
        _ => (Some(Kind::Exclusive), &[][..]),
    };
    for (at, facts) in holders.enumerate() {
        let mut holder = holder(facts)?;
        if let Some(taken) = taken.get(at) {
            holder.permits = u32::try_from(number(taken)?).unwrap_or(u32::MAX);
        }
        if !holder.cooling_down && holder.process.is_some() {
            tokens.extend(Token::parse(&holder.id));
        }
        status.holders.push(holder);
    }
    status.kind = kind.filter(|_| status.is_held());
    Some((status, tokens))
}

fn read_waiter(facts: &[Value]) -> Option<Waiter> {
    let [kind, name, waited] = facts else {
        return None;
    };
    let who = name::holder(&text(name)?, None);
    let waited = Duration::from_micros(number(waited)?);
    Some(Waiter::new(who, kind::parse(&text(kind)?)?, Some(waited)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use tokio::sync::oneshot;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;
    use crate::backend::queries::Queries;
    use crate::backend::queue::Rules;
    use crate::backend::queue::protocol::message::Message;
    use crate::backend::queue::protocol::trouble::ServerSaid;
    use crate::backend::redis::inspect::Asked;
    use crate::backend::redis::protocol::call::Queue;
    use crate::base::clock::{Clock, Moment};

    type Answered = oneshot::Receiver<Result<Status, Cause>>;

    /// Queries over one connection, whose steps are answered by hand.
    struct Peer {
        queries: Queries<Asked<()>>,
        queue: Queue,
    }

    impl Peer {
        fn connected() -> Self {
            let mut queue = Queue::new(Rules::default());
            queue.connected(Moment::from_nanos(1));
            let queries = Queries::new();
            Self { queries, queue }
        }

        /// A query, and its first step.
        fn ask(&mut self) -> (Answered, Asked<()>) {
            let (reply, answered) = oneshot::channel();
            let server = Server {
                asker: self.queries.asker(),
                connection: (),
                layout: Layout::Shared,
                clock: Clock::manual(),
            };
            let reports = self.queue.listen();
            let status = server.status(LockKey::unchecked("k"), reports);
            self.queries.begin(reply, status);
            let step = self.next_step().expect("a step");
            assert!(matches!(step.step, Inspect::Status(_)));
            (answered, step)
        }

        fn next_step(&mut self) -> Option<Asked<()>> {
            self.queries.poll(&mut Context::from_waker(Waker::noop()));
            self.queries.next_asked()
        }
    }

    fn reply(step: Asked<()>, reply: Result<Value, Trouble>) {
        step.by.send(reply).expect("it is awaited");
    }

    fn token() -> Token {
        Token::parse(&"7".repeat(32)).expect("a token")
    }

    fn held() -> Value {
        let name = format!("{} 1@host", token());
        let holder = [
            Value::Int(0),
            Value::Array(Vec::new()),
            Value::BulkString(name.into_bytes()),
            Value::Int(900),
            Value::BulkString(Vec::new()),
        ];
        Value::Array(holder.into())
    }

    #[test]
    fn a_report_may_count_any_number() {
        let (mut status, _) = read(LockKey::of("k"), &held()).expect("a status");
        status.waiting = 2;
        let report = Report {
            token: token(),
            fence: 9,
            held: Duration::MAX,
            followers: usize::MAX,
            nested: Vec::new(),
        };
        assert!(note(&mut status, &report));
        assert_eq!(
            (status.waiting, status.holders[0].since),
            (usize::MAX, None)
        );
    }

    #[test]
    fn a_report_without_a_fence_leaves_what_is_known() {
        let (mut status, _) = read(LockKey::of("k"), &held()).expect("a status");
        let report = Report {
            token: token(),
            fence: 0,
            held: Duration::ZERO,
            followers: 0,
            nested: Vec::new(),
        };
        for known in [None, Some(FencingToken::new(9))] {
            status.holders[0].fencing_token = known;
            note(&mut status, &report);
            assert_eq!(status.holders[0].fencing_token, known);
        }
    }

    #[test]
    fn what_a_holder_reports_ends_no_query_that_has_no_answer_yet() {
        let mut peer = Peer::connected();
        let (mut first, step) = peer.ask();
        let (mut second, other) = peer.ask();
        reply(step, Ok(held()));
        let asked = peer.next_step().map(|it| it.step);
        assert!(matches!(asked, Some(Inspect::Holders(_))), "{asked:?}");
        let report = Message::Told {
            token: token(),
            fence: 9,
            held: Duration::ZERO,
            followers: 0,
            nested: Vec::new(),
        };
        peer.queue.heard(Moment::from_nanos(2), report);
        assert!(peer.next_step().is_none());
        let status = first.try_recv().expect("an answer").expect("a status");
        assert_eq!(status.holders[0].fencing_token, Some(FencingToken::new(9)));

        reply(other, Ok(held()));
        let _step = peer.next_step().expect("the holders are asked");
        let unanswered = second.try_recv();
        assert!(matches!(unanswered, Err(TryRecvError::Empty)));
        let cut = Trouble::Unknown(Arc::new(ServerSaid("cut".into())));
        peer.queue.disconnected(cut);
        assert!(peer.next_step().is_none());
        assert!(second.try_recv().expect("an answer").is_err());
    }

    #[test]
    fn what_was_not_run_is_asked_again() {
        let mut peer = Peer::connected();
        let (mut answered, step) = peer.ask();
        reply(step, Err(Trouble::NotRun));
        let again = peer.next_step().expect("the same step");
        assert!(matches!(again.step, Inspect::Status(_)));
        reply(again, Err(Trouble::not_now("not now")));
        assert!(peer.next_step().is_none());
        assert!(answered.try_recv().expect("an answer").is_err());
    }
}
