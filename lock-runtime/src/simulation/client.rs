//! One process of the simulation: the real operations, watchdog and queue, and
//! a program that takes locks, gives up and holds on at random.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::{mpsc, oneshot};

use super::Store;
use super::cooling::cooldown;
use super::downgrades::Downgrading;
use super::late::Naps;
use super::overrunning::Overrunning;
use super::tickets::Issuing;
use crate::backend::Request;
use crate::backend::redis::protocol::call::Queue;
use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::redlock::clocks::Clocks;
use crate::backend::redis::redlock::coordinator::Coordinator;
use crate::base::clock::{Clock, Moment};
use crate::driver::{Limits, Mailbox, Op, Operations, Pile};
use crate::held::guard::LockGuard;
use crate::held::home::Home;
use crate::types::answer::{Answer, Reply};
use crate::types::error::LockError;
use crate::types::holder::Status;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::leader::Leader;
use crate::types::query::Query;
use crate::types::terms::{LeaseId, Terms, Wait};
use crate::types::ticket::Ticket;
use crate::types::ticket_id::TicketId;

/// No lease is longer.
pub(super) const LONGEST_TTL: Duration = Duration::from_secs(10);

/// Nobody shuts down, and waiters outlast every trouble.
const LIMITS: Limits = Limits {
    shutdown_grace: Duration::ZERO,
    unavailable_wait: Wait::Forever,
};

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about how it behaves"
)]
pub(super) struct Client {
    /// One for each server.
    pub(super) links: Vec<Link>,
    /// Decides where there are several servers.
    pub(super) coordinator: Option<Coordinator>,
    pub(super) dead: bool,
    pub(super) paused_until: Moment,
    pub(super) wakes_at: Option<Moment>,
    /// What it holds, in which kind, and until when it wants to.
    guards: Vec<(LockGuard, Kind, Moment)>,
    /// What it holds without looking, and whether it does that at times.
    pub(super) overrunning: Vec<Overrunning>,
    pub(super) overruns: bool,
    waiting: Vec<Waiting>,
    operations: Operations,
    mailbox: Arc<Mailbox>,
    inbox: mpsc::UnboundedReceiver<Op>,
    rng: Rng,
    /// When it asks next; it stops when the faults do.
    acts_at: Option<Moment>,
    asked: u64,
    usual_ttl: Duration,
    /// Whether it often wants the same, so that queues are long.
    pub(super) crowded: bool,
    /// Whether it shares no lock, and waits behind any number of others.
    pub(super) exclusive: bool,
    /// How many may wait for a lock, if that is limited.
    pub(super) limited: Option<u32>,
    /// An error that somebody got who waits for ever.
    pub(super) error: Option<String>,
    /// What was refused before its wait was over, since this was last looked at.
    pub(super) refused: Vec<LeaseId>,
    /// What it has got since this was last looked at, and under which number.
    pub(super) entered: Vec<(LockKey, u64)>,
    /// What has ended before its caller was polled.
    pub(super) missed: Vec<(LockKey, u64)>,
    /// Whether it only ever wants one lock, and how often it has got it.
    pub(super) eager: Option<u32>,
    /// Whether it renews whatever it takes, and how often it has lost a lock that it had
    /// for itself.
    pub(super) steady: bool,
    pub(super) lost: u32,
    /// The tickets that it makes, if it does.
    pub(super) issuing: Option<Issuing>,
    /// The writers that go on as readers, if some do.
    pub(super) downgrading: Option<Downgrading>,
    /// What it publishes as a leader, if it takes locks for itself to lead elections.
    pub(super) leads: Option<Arc<str>>,
    /// The questions who holds a lock that were not sent yet.
    pub(super) looks: Vec<(LockKey, Reply<Status>)>,
    /// Those that it has adopted since this was last looked at.
    pub(super) adopted: Vec<TicketId>,
    /// What it has released early since this was last looked at, and until when that cools down.
    pub(super) cooling: Vec<(LockKey, Moment)>,
    /// When its callers are not polled, if that happens.
    pub(super) naps: Option<Naps>,
}

/// A connection to one server.
pub(super) struct Link {
    pub(super) queue: Queue,
    pub(super) up: bool,
    pub(super) generation: u64,
    /// What goes over it next, where another link has the queue.
    pub(super) outbox: Vec<Sent>,
    pub(super) requests_until: Moment,
    pub(super) answers_until: Moment,
}

impl Link {
    fn new(now: Moment, store: Store) -> Self {
        Self {
            queue: Queue::new(store.rules()),
            up: false,
            generation: 0,
            outbox: Vec::new(),
            requests_until: now,
            answers_until: now,
        }
    }
}

/// A caller, as [`Acquire`](crate::api::acquire::Acquire) is.
struct Waiting {
    terms: Arc<Terms>,
    answer: oneshot::Receiver<Result<LockGuard, LockError>>,
    /// When it asked first, and whether it asks again.
    asked: Moment,
    again: bool,
    gives_up: Option<Moment>,
    /// Until when it is not polled.
    naps_until: Option<Moment>,
}

impl Waiting {
    /// Whether its wait is over.
    fn is_over(&self, now: Moment) -> bool {
        self.terms.wait.rest(self.asked, now).is_try()
    }
}

impl Client {
    pub(super) fn new(clock: Clock, mut rng: Rng, store: Store) -> Self {
        let (mailbox, inbox) = Mailbox::alone();
        let now = clock.now();
        let mailbox = Arc::new(mailbox);
        let home: Arc<dyn Home> = mailbox.clone();
        let servers = store.servers();
        let usual_ttl = [300, 1_500, 4_000, 10_000][rng.usize(..4)];
        let usual_ttl = Duration::from_millis(usual_ttl);
        Self {
            links: (0..servers).map(|_| Link::new(now, store)).collect(),
            coordinator: (store == Store::Majority)
                .then(|| Coordinator::new(Clocks::new(servers, 0))),
            dead: false,
            paused_until: now,
            wakes_at: None,
            guards: Vec::new(),
            overrunning: Vec::new(),
            overruns: false,
            waiting: Vec::new(),
            operations: Operations::new(clock, LIMITS, Arc::downgrade(&home), "a server".into()),
            mailbox,
            inbox,
            rng,
            acts_at: Some(now),
            asked: 0,
            crowded: false,
            exclusive: false,
            limited: None,
            error: None,
            refused: Vec::new(),
            usual_ttl,
            entered: Vec::new(),
            missed: Vec::new(),
            eager: None,
            steady: false,
            lost: 0,
            issuing: None,
            downgrading: None,
            leads: None,
            looks: Vec::new(),
            adopted: Vec::new(),
            cooling: Vec::new(),
            naps: None,
        }
    }

    /// What the program does: ask, give up, let go.
    pub(super) fn act(&mut self, now: Moment, may_ask: bool) {
        let held = self.guards.len();
        let lost = self.guards.iter().filter(|(guard, kind, until)| {
            *kind == Kind::Exclusive && now < *until && !guard.is_held()
        });
        self.lost += u32::try_from(lost.count()).unwrap_or(u32::MAX);
        self.let_go(now, may_ask);
        self.overrun(now);
        if self.eager.is_some() && self.guards.len() < held {
            self.acts_at = Some(now);
        }
        let mailbox = &self.mailbox;
        self.waiting.retain(|it| {
            let waits = it.gives_up.is_none_or(|at| now < at);
            if !waits {
                // As dropping the future does.
                let _ = mailbox.send(Op::Cancel(it.terms.id));
            }
            waits
        });
        if !may_ask {
            self.acts_at = None;
        }
        while self.acts_at.is_some_and(|at| at <= now) {
            self.ask(now);
        }
    }

    /// Lets go of what it has held for long enough, or makes tickets of it.
    fn let_go(&mut self, now: Moment, may_issue: bool) {
        let issuing = self.issuing.as_mut().filter(|_| may_issue);
        let ended =
            |(guard, _, until): &mut (LockGuard, Kind, Moment)| now >= *until || !guard.is_held();
        let ended = self.guards.extract_if(.., ended);
        let (mut issuing, mut downgrading) = (issuing, self.downgrading.as_mut());
        for (guard, kind, _) in ended {
            match (&mut issuing, &mut downgrading) {
                (_, Some(downgrading)) if kind == Kind::Exclusive => downgrading.ask(now, guard),
                (Some(issuing), _) => issuing.ask(now, guard),
                _ => self.cooling.extend(cooldown(&guard, kind)),
            }
        }
        if let Some(downgrading) = &mut self.downgrading {
            downgrading.give_up(now);
        }
        if let Some(issuing) = &mut self.issuing {
            issuing.give_up(now);
        }
    }

    /// Turns a ticket into a guard again.
    pub(super) fn adopt(&mut self, now: Moment, ticket: &Ticket) {
        self.asked += 1;
        let terms = Terms {
            kind: ticket.kind,
            adopts: Some(Box::new(ticket.id)),
            ..Terms::of(LeaseId(self.asked), &ticket.key.to_string(), self.usual_ttl)
        };
        self.send(now, terms, None);
    }

    /// The leaders of an election are shown to this observer.
    pub(super) fn observe(&self, key: LockKey, observer: mpsc::UnboundedSender<Leader>) {
        let _ = self.mailbox.send(Op::Observe(key, observer));
    }

    /// What the driver's thread does.
    pub(super) fn drive(&mut self, now: Moment) {
        loop {
            while let Ok(op) = self.inbox.try_recv() {
                self.operations.take(now, op);
            }
            self.operations.tick(now);
            let requests = self.operations.requests();
            let mut idle = requests.is_empty();
            for request in requests {
                if let Request::Query(Query::Status(key, reply)) = request {
                    self.looks.push((key, reply));
                    continue;
                }
                match &mut self.coordinator {
                    Some(coordinator) => coordinator.submit(now, request),
                    None => self.links[0].queue.submit(now, request),
                }
            }
            idle &= !self.settle(now);
            self.operations.deliver(&Pile::default());
            self.collect(now);
            if idle && self.inbox.is_empty() {
                self.overrun(now);
                return;
            }
        }
    }

    /// What the backend does in a poll; `false` if nothing has come of it.
    fn settle(&mut self, now: Moment) -> bool {
        let mut heard = false;
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.tick(now);
            for (server, order) in coordinator.orders() {
                heard = true;
                self.links[server].queue.obey(now, order);
            }
        }
        for (server, link) in self.links.iter_mut().enumerate() {
            link.queue.tick(now);
            while let Some(outcome) = link.queue.next_outcome() {
                heard = true;
                match &mut self.coordinator {
                    Some(coordinator) => coordinator.settle(now, server, outcome),
                    None => self.operations.settle(now, outcome),
                }
            }
        }
        while let Some(outcome) = self
            .coordinator
            .as_mut()
            .and_then(Coordinator::next_outcome)
        {
            heard = true;
            self.operations.settle(now, outcome);
        }
        heard
    }

    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        let queues = self.links.iter().filter_map(|it| it.queue.next_wakeup());
        let coordinator = self.coordinator.as_ref().and_then(Coordinator::next_wakeup);
        let plans = self.waiting.iter();
        let plans = plans.flat_map(|it| it.gives_up.into_iter().chain(it.naps_until));
        let holds = self.guards.iter().map(|(_, _, until)| *until);
        [self.operations.next_wakeup(), coordinator]
            .into_iter()
            .flatten()
            .chain(queues)
            .chain(plans)
            .chain(holds)
            .chain(self.overrunning.iter().map(Overrunning::until))
            .chain(self.acts_at)
            .chain(self.issuing.as_ref().and_then(Issuing::next_wakeup))
            .chain(self.downgrading.as_ref().and_then(Downgrading::next_wakeup))
            .min()
    }

    /// What it holds within the deadlines.
    pub(super) fn holds(&self) -> impl Iterator<Item = (&LockGuard, Kind)> {
        let held = self.guards.iter().filter(|(guard, ..)| guard.is_held());
        let held = held.map(|(guard, kind, _)| (guard, *kind));
        held.chain(self.overrunning.iter().filter_map(Overrunning::held))
    }

    pub(super) fn die(&mut self) {
        self.dead = true;
        self.guards.clear();
        self.overrunning.clear();
        self.waiting.clear();
        self.issuing = None;
        self.downgrading = None;
    }

    pub(super) fn is_idle(&self) -> bool {
        let issuing = self.issuing.as_ref().is_some_and(|it| !it.is_idle());
        let downgrading = self.downgrading.as_ref().is_some_and(|it| !it.is_idle());
        !issuing
            && !downgrading
            && self.guards.is_empty()
            && self.overrunning.is_empty()
            && self.waiting.is_empty()
            && self.operations.is_idle()
    }

    fn ask(&mut self, now: Moment) {
        if self.eager.is_some() {
            self.acts_at = None;
            self.asked += 1;
            let id = LeaseId(self.asked);
            return self.send(now, Terms::of(id, "a", LONGEST_TTL), None);
        }
        let pick = self.rng.u8(..);
        let most = if self.crowded { 250 } else { 1200 };
        self.acts_at = Some(now.after(Duration::from_millis(self.rng.u64(1..most))));
        self.asked += 1;
        let id = LeaseId(self.asked);
        let wait = match pick {
            0..40 => Wait::AtMost(Duration::ZERO),
            40..120 => Wait::AtMost(Duration::from_millis(self.rng.u64(1..8000))),
            _ => Wait::Forever,
        };
        let likely = self.crowded && self.rng.u8(..) < 230;
        let key = ["a", "b"][self.rng.usize(..2)];
        let longest = u64::try_from(LONGEST_TTL.as_millis()).unwrap_or(u64::MAX);
        let ttl = match self.rng.usize(..4) {
            pick if self.crowded => Duration::from_millis([300, 2_000, 6_000, longest][pick]),
            _ => Duration::from_millis(self.rng.u64(100..longest)),
        };
        let ttl = if likely { self.usual_ttl } else { ttl };
        let kind = match self.rng.u8(..10) {
            _ if likely || self.exclusive => Kind::Exclusive,
            0..5 => Kind::Exclusive,
            8.. if self.coordinator.is_none() => Kind::Permits(2),
            _ => Kind::Read,
        };
        let mut hold =
            |times| (self.rng.u8(..) < 25).then(|| Duration::from_millis(self.rng.u64(times)));
        let (min_hold, max_hold) = (hold(0..2_000), hold(10..20_000));
        let min_hold = min_hold.filter(|it| max_hold.is_none_or(|most| *it <= most));
        let max_hold = max_hold.filter(|_| !self.steady);
        let limits = !wait.is_try() && self.coordinator.is_none() && self.rng.u8(..) < 25;
        let limits = limits && !self.exclusive;
        let max_waiters = limits.then(|| self.rng.u32(1..4));
        let max_waiters = max_waiters.or(self.limited.filter(|_| !wait.is_try()));
        let terms = Terms {
            wait,
            renew: self.rng.u8(..) < 220 || self.steady,
            kind,
            min_hold,
            max_hold,
            max_waiters,
            data: self.leads.clone().filter(|_| kind == Kind::Exclusive),
            ..Terms::of(id, key, ttl)
        };
        let gives_up =
            (self.rng.u8(..) < 60).then(|| now.after(Duration::from_millis(self.rng.u64(0..3000))));
        self.send(now, terms, gives_up);
    }

    fn send(&mut self, now: Moment, terms: Terms, gives_up: Option<Moment>) {
        let terms = Arc::new(terms);
        self.waiting.push(Waiting {
            answer: self.request(Arc::clone(&terms)),
            terms,
            asked: now,
            again: false,
            gives_up,
            naps_until: None,
        });
    }

    fn request(&self, terms: Arc<Terms>) -> oneshot::Receiver<Result<LockGuard, LockError>> {
        let (reply, answer): (Answer<LockGuard>, _) = oneshot::channel();
        let _ = self.mailbox.send(Op::Acquire { terms, reply });
        answer
    }

    fn collect(&mut self, now: Moment) {
        if let Some(issuing) = &mut self.issuing {
            issuing.collect();
        }
        if let Some(downgrading) = &mut self.downgrading {
            let readers = downgrading.collect(now).into_iter();
            let readers = readers.map(|(guard, until)| (guard, Kind::Read, until));
            self.guards.extend(readers);
        }
        let mut index = 0;
        while index < self.waiting.len() {
            let caller = &mut self.waiting[index];
            caller.naps_until.take_if(|until| *until <= now);
            if caller.naps_until.is_some() {
                index += 1;
                continue;
            }
            match caller.answer.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => {
                    let naps = self.naps.as_mut();
                    caller.naps_until = naps.and_then(|it| it.begin(now, caller.terms.ttl));
                    index += 1;
                }
                Err(oneshot::error::TryRecvError::Closed) => {
                    self.error = Some("nothing".into());
                    self.waiting.remove(index);
                }
                Ok(answer) => {
                    let caller = self.waiting.remove(index);
                    self.answered(now, &caller, answer);
                }
            }
        }
    }

    fn answered(&mut self, now: Moment, caller: &Waiting, answer: Result<LockGuard, LockError>) {
        let guard = match answer {
            Ok(guard) => guard,
            Err(LockError::Contended { .. })
                if !caller.is_over(now) && caller.terms.max_waiters.is_some() =>
            {
                return self.refused.push(caller.terms.id);
            }
            Err(LockError::InvalidTicket { .. }) => return,
            Err(error) => {
                if caller.terms.wait == Wait::Forever {
                    self.error = Some(error.to_string());
                }
                return;
            }
        };
        if let Some(naps) = &mut self.naps {
            naps.end(now, guard.lease());
        }
        match guard.deliver() {
            Ok(guard) => self.enter(now, &caller.terms, guard),
            Err(late) => {
                let fence = late.fencing_token().get();
                self.missed.push((late.key().clone(), fence));
                drop(late);
                self.ask_again(now, caller);
            }
        }
    }

    /// The lock has ended before its caller was polled.
    fn ask_again(&mut self, now: Moment, caller: &Waiting) {
        if caller.again && caller.is_over(now) {
            return;
        }
        self.asked += 1;
        let terms = Terms {
            id: LeaseId(self.asked),
            ..Terms::clone(&caller.terms)
        };
        let sent = Terms {
            wait: terms.wait.rest(caller.asked, now),
            ..terms.clone()
        };
        self.waiting.push(Waiting {
            answer: self.request(sent.into()),
            terms: terms.into(),
            asked: caller.asked,
            again: true,
            gives_up: caller.gives_up,
            naps_until: None,
        });
    }

    fn enter(&mut self, now: Moment, terms: &Terms, guard: LockGuard) {
        self.adopted.extend(terms.ticket());
        let long = self.rng.u8(..) < 20;
        let most = if long { 15_000 } else { 300 };
        let most = if self.crowded { most / 6 } else { most };
        let most = if self.leads.is_some() { most * 4 } else { most };
        let mut hold = Duration::from_millis(self.rng.u64(0..most));
        if let Some(count) = &mut self.eager {
            *count += 1;
            hold = Duration::from_millis(1);
        }
        let fence = guard.fencing_token().get();
        self.entered.push((guard.key().clone(), fence));
        if self.overruns && self.rng.bool() {
            let until = now.after((2 * terms.ttl).mul_f64(self.rng.f64()));
            let it = Overrunning::new(guard, terms.kind, until);
            return self.overrunning.push(it);
        }
        self.guards.push((guard, terms.kind, now.after(hold)));
    }
}
