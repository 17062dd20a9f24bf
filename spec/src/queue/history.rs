//! The history of a run, which the server's rules accept or refuse step by step: the same [`Server`] as in the search,
//! with the nanoseconds of a clock instead of ticks.
//!
//! A step is what the server has done for one call, or the poll of a body. What nobody observes, the rules add: leases,
//! cooldowns and tickets that end, and connections that become silent. What the model leaves open, the observation
//! decides: how far the counter of fences and the positions go on.

use std::collections::HashMap;
use std::fmt;

use super::rules::Rules;
use super::server::{Name, Owner, Position, Push, Reply, Request, Seen, Server, Token};
use super::setting::{Company, Setting};

/// What tells one acquisition from all others, in a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(pub u128);

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A moment of a run, and what happened.
#[derive(Clone, Debug)]
pub struct Step {
    /// Nanoseconds of the server's clock.
    pub at: u64,
    /// The number of the lock.
    pub lock: usize,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The server ran a script for this client.
    Ran {
        /// Whose call it was.
        client: usize,
        /// The calls about this lock: one, or several that go together.
        calls: Vec<Call>,
        /// What came of it.
        outcome: Outcome,
        /// The grants that were published meanwhile.
        grants: Vec<Grant>,
    },
    /// The channel of this client has a subscriber, or has none any more. It is about all locks.
    Listens(usize, bool),
    /// This client polled a body under this fence.
    Polled(usize, u64),
    /// Something happened that the model leaves out: the lock is not checked.
    Outside,
    /// The lock has no holder and no waiters: it is checked from now on. The counter of fences is at least here.
    Free(u64),
}

/// A call of a script. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub enum Call {
    /// To wait, or to try.
    Acquire {
        /// Who wants the lock.
        who: Who,
        /// The position of an earlier token.
        position: Option<u64>,
        /// What it says of others.
        company: Company,
        /// Whether it tries once.
        tries: bool,
        /// Its order among waiters of one position, which a token that starts over may share with a newer one.
        rank: u64,
    },
    /// To take the lock of a ticket.
    Adopt(Who, Id),
    /// About waiters.
    Ask(Vec<Who>),
    /// To extend a lease.
    Renew(Who),
    /// To end a lease after this time, which hands nothing over.
    Shorten(Who, u64),
    /// To release, with a cooldown of this length.
    Release(Who, u64),
    /// To leave the queue, and to release.
    Leave(Who),
    /// To let a ticket keep the lock closed for this time.
    Issue(Who, Id, u64),
}

/// An acquisition.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// Its token.
    pub token: Id,
    /// The ttl of the call.
    pub ttl: u64,
}

/// What is known of a script that ran, beside what it has published.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The reply, one for each acquisition that was asked about.
    Replies(Vec<Answer>),
    /// What it has written.
    Writes {
        /// Those that have become the owner, in their order.
        owners: Vec<Id>,
        /// The positions of waiters that have joined the queue.
        positions: Vec<(Id, u64)>,
    },
}

impl Outcome {
    fn replies(&self) -> &[Answer] {
        match self {
            Self::Replies(replies) => replies,
            Self::Writes { .. } => &[],
        }
    }

    /// The position that a waiter has got.
    fn position(&self, token: Id) -> Option<u64> {
        match self {
            Self::Replies(replies) => replies.iter().find_map(|it| match it {
                Answer::Waiting(position) => *position,
                _ => None,
            }),
            Self::Writes { positions, .. } => {
                let mut own = positions.iter().filter(|(waiter, _)| *waiter == token);
                own.next().map(|(_, position)| *position)
            }
        }
    }
}

/// What a script replied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Granted, with this fence.
    Granted(u64),
    /// In the queue, at this position if the reply says so.
    Waiting(Option<u64>),
    /// Neither a holder nor in the queue.
    Gone,
    /// Somebody else has it, or there is no such ticket.
    Refused,
    /// Whether the acquisition held the lock.
    Ours(bool),
}

/// A message that grants a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// To whom.
    pub token: Id,
    /// Its fence.
    pub fence: u64,
    /// Who gets the lock together with it, with the fences behind that one.
    pub followers: Vec<Id>,
}

/// The state of the model after the steps so far.
#[derive(Debug)]
pub struct History {
    /// The states in which the server may be: one, unless times are blurred.
    states: Vec<State>,
    known: Known,
    now: u64,
    /// How much earlier or later than its moment a step may be: the server's clock is read before a script runs.
    blur: u64,
    clients: usize,
    views: Vec<View>,
    steps: Vec<Step>,
    /// How many steps were accepted, and how many were about a lock that was not checked.
    pub counts: Counts,
}

/// A state in which the server may be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    server: Server<u64>,
    /// What the lock has still, although its time is over within the blur.
    late: Late,
}

/// What ends later than its time, and when it would have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Late {
    lease: Option<(Token<u64>, u64)>,
    /// The clients that do not count as silent yet.
    clients: Vec<(usize, u64)>,
}

/// How many steps there were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Those that the rules have accepted.
    pub accepted: usize,
    /// Those about a lock that was not checked.
    pub outside: usize,
}

/// What is seen of a lock.
#[derive(Clone, Debug, Default)]
struct View {
    /// Whether it is checked.
    outside: bool,
    /// The fence when that began; earlier grants were not seen.
    since: u64,
    /// The largest fence under which a body began.
    begun: u64,
}

/// What is known of the acquisitions, which are numbered.
#[derive(Debug)]
struct Known {
    rules: Rules<u64>,
    numbers: HashMap<Id, u64>,
    plans: Vec<Plan>,
    /// The acquisitions that have issued tickets.
    tickets: HashMap<Id, u64>,
}

#[derive(Clone, Debug)]
struct Plan {
    token: Id,
    client: usize,
    lock: usize,
    ttl: u64,
    cooldown: u64,
    ticket: u64,
    company: Company,
    acquired: bool,
    rank: u64,
    /// Those that its client may have begun with.
    fences: Vec<u64>,
}

/// A step that the rules do not allow.
#[derive(Debug)]
pub struct Refusal {
    /// The steps about its lock, up to this one.
    steps: Vec<Step>,
    /// The state of the lock before it.
    before: String,
    /// What the rules say instead.
    why: String,
}

impl Known {
    fn plan(&self, task: u64) -> &Plan {
        &self.plans[index(task)]
    }

    fn plan_mut(&mut self, task: u64) -> &mut Plan {
        &mut self.plans[index(task)]
    }

    /// The number of an acquisition, which may be heard of for the first time.
    fn number(&mut self, client: usize, lock: usize, who: Who) -> u64 {
        let Self { numbers, plans, .. } = self;
        *numbers.entry(who.token).or_insert_with(|| {
            plans.push(Plan {
                token: who.token,
                client,
                lock,
                ttl: who.ttl,
                cooldown: 0,
                ticket: 0,
                company: Company::Unsaid,
                acquired: false,
                rank: 0,
                fences: Vec::new(),
            });
            plans.len() as u64 - 1
        })
    }

    fn grant(&self, push: &Push<u64>) -> Grant {
        let token = |it: Token<u64>| self.plan(it.task).token;
        Grant {
            token: token(push.token),
            fence: push.fence,
            followers: push.followers.iter().map(|(it, _)| token(*it)).collect(),
        }
    }

    /// #names: an acquisition that sees two fences uses the one with which it began.
    fn note_fence(&mut self, reply: Reply<u64>) {
        if let Reply::Granted(token, fence) = reply {
            self.plan_mut(token.task).fences.push(fence);
        }
    }

    /// #chains: followers have the token of the first, and fences of their own.
    fn note_fences(&mut self, pushes: &[Push<u64>]) {
        for push in pushes {
            let fences = &mut self.plan_mut(push.token.task).fences;
            fences.push(push.fence);
            fences.extend(push.followers.iter().map(|(_, fence)| *fence));
        }
    }
}

impl Setting<u64> for Known {
    fn rules(&self) -> &Rules<u64> {
        &self.rules
    }

    fn client(&self, task: u64) -> usize {
        self.plan(task).client
    }

    fn lock(&self, task: u64) -> usize {
        self.plan(task).lock
    }

    fn ttl(&self, task: u64) -> u64 {
        self.plan(task).ttl
    }

    fn cooldown(&self, task: u64) -> u64 {
        self.plan(task).cooldown
    }

    fn ticket(&self, task: u64) -> u64 {
        self.plan(task).ticket
    }

    fn company(&self, task: u64) -> Company {
        self.plan(task).company
    }
}

impl History {
    /// Of a server with so many locks, none of them held, and so many clients, none of them connected.
    pub fn new(rules: Rules<u64>, locks: usize, clients: usize) -> Self {
        let mut server = Server::new(locks, clients);
        server.listens.fill(false);
        Self {
            states: vec![State {
                server,
                late: Late::default(),
            }],
            known: Known {
                rules,
                numbers: HashMap::new(),
                plans: Vec::new(),
                tickets: HashMap::new(),
            },
            now: 0,
            blur: 0,
            clients,
            views: vec![View::default(); locks],
            steps: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// From now on, steps may be earlier or later than their moments by so much, in a history of one lock. Less than before
    /// changes nothing.
    pub fn blur(&mut self, blur: u64) {
        self.blur = self.blur.max(blur);
    }

    /// One more client, which is connected.
    pub fn add_client(&mut self) {
        self.clients += 1;
        for State { server, .. } in &mut self.states {
            server.listens.push(true);
            for lock in &mut server.locks {
                lock.seen.push(None);
            }
        }
    }

    /// Whether a lock is checked.
    pub fn checks(&self, lock: usize) -> bool {
        !self.views[lock].outside
    }

    /// Takes one more step.
    ///
    /// # Errors
    ///
    /// If the rules do not allow it.
    pub fn step(&mut self, step: Step) -> Result<(), Box<Refusal>> {
        match self.take(&step) {
            Ok(()) => {
                self.steps.push(step);
                Ok(())
            }
            Err(why) => Err(Box::new(self.refusal(step, why))),
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        let outside = self.views[step.lock].outside;
        match &step.event {
            Event::Listens(client, listens) => {
                for State { server, .. } in &mut self.states {
                    server.listens[*client] = *listens;
                }
            }
            Event::Outside => self.views[step.lock].outside = true,
            Event::Free(fence) => self.begin_anew(step.lock, *fence),
            _ if outside => self.counts.outside += 1,
            Event::Polled(client, fence) => {
                self.pass(step.at);
                self.polled(step.lock, *client, *fence)?;
            }
            Event::Ran {
                client,
                calls,
                outcome,
                grants,
            } => {
                let mut requests = Vec::with_capacity(calls.len());
                for call in calls {
                    requests.extend(self.requests(*client, step.lock, call)?);
                }
                self.ran(step, &requests, outcome, grants)?;
            }
        }
        self.counts.accepted += usize::from(!outside);
        Ok(())
    }

    fn pass(&mut self, at: u64) {
        let time = at.saturating_sub(self.now);
        self.now += time;
        for State { server, .. } in &mut self.states {
            server.pass(&self.known.rules, time);
        }
    }

    /// The server runs a script, at its moment or as far from it as the clocks allow. Some observations do not tell
    /// whether a lease had ended: then the server may be in each of several states.
    fn ran(
        &mut self,
        step: &Step,
        requests: &[Request<u64>],
        outcome: &Outcome,
        grants: &[Grant],
    ) -> Result<(), String> {
        let before = std::mem::take(&mut self.states);
        let passed = step.at.saturating_sub(self.now);
        self.now += passed;
        let mut refused = Ok(());
        for state in before {
            for mut state in state.at(&self.known.rules, step.lock, self.now, passed, self.blur) {
                match state.run(&mut self.known, step.lock, requests, outcome, grants) {
                    Ok(()) if self.states.contains(&state) => {}
                    Ok(()) => self.states.push(state),
                    Err(why) => refused = refused.and(Err(why)),
                }
            }
        }
        if self.states.is_empty() {
            refused
        } else {
            Ok(())
        }
    }

    fn begin_anew(&mut self, lock: usize, fence: u64) {
        self.states.truncate(1);
        for State { server, late } in &mut self.states {
            server.fence = server.fence.max(fence);
            let state = &mut server.locks[lock];
            state.owner = None;
            state.queue.clear();
            state.seen.fill(None);
            *late = Late::default();
            self.views[lock].since = server.fence;
        }
        self.views[lock].outside = false;
    }

    /// What the model runs.
    fn requests(
        &mut self,
        client: usize,
        lock: usize,
        call: &Call,
    ) -> Result<Vec<Request<u64>>, String> {
        let mut token = |who: &Who| Token {
            task: self.known.number(client, lock, *who),
            attempt: 0,
        };
        Ok(vec![match call {
            Call::Acquire {
                who,
                position,
                company,
                tries,
                rank,
            } => {
                let token = token(who);
                let position = position.map(|tick| Position { tick, rank: *rank });
                self.known.plan_mut(token.task).rank = *rank;
                return self
                    .acquire(token, position, *company, *tries)
                    .map(|it| vec![it]);
            }
            Call::Adopt(who, ticket) => {
                let token = token(who);
                let issuer = self.known.tickets.get(ticket);
                Request::Adopt(token, issuer.copied().unwrap_or(u64::MAX))
            }
            Call::Ask(all) => return Ok(all.iter().map(|it| Request::Ask(token(it))).collect()),
            Call::Renew(who) => Request::Renew(token(who), who.ttl),
            Call::Shorten(who, left) => Request::Shorten(token(who), *left),
            Call::Release(who, 0) | Call::Leave(who) => Request::Release(token(who)),
            Call::Release(who, cooldown) => {
                let token = token(who);
                self.known.plan_mut(token.task).cooldown = *cooldown;
                Request::CoolDown(token)
            }
            Call::Issue(who, ticket, time) => {
                let token = token(who);
                self.known.plan_mut(token.task).ticket = *time;
                self.known.tickets.insert(*ticket, token.task);
                Request::Issue(token)
            }
        }])
    }

    /// #taking-a-lock: no acquire is sent again under the same token.
    fn acquire(
        &mut self,
        token: Token<u64>,
        position: Option<Position<u64>>,
        company: Company,
        tries: bool,
    ) -> Result<Request<u64>, String> {
        let plan = self.known.plan_mut(token.task);
        if std::mem::replace(&mut plan.acquired, true) {
            return Err("nobody acquires twice under one token".into());
        }
        plan.company = company;
        Ok(if tries {
            Request::Try(token)
        } else {
            Request::Acquire(token, position)
        })
    }

    /// A body is polled: the server has the lock for it, and later bodies have larger fences.
    fn polled(&mut self, lock: usize, client: usize, fence: u64) -> Result<(), String> {
        let view = &mut self.views[lock];
        if fence <= view.since {
            return Ok(());
        }
        let holds = |state: &State| {
            let owner = state.server.locks[lock].owner;
            let holder = owner
                .filter(|it| it.name == Name::Holder)
                .map(|it| self.known.plan(it.token.task));
            holder.is_some_and(|it| it.client == client && it.fences.contains(&fence))
        };
        if !self.states.iter().any(holds) {
            return Err("the server has not the lock for this body".into());
        }
        if fence < view.begun {
            return Err(format!("a body has begun under {}", view.begun));
        }
        view.begun = fence;
        Ok(())
    }

    /// The steps about the lock, and the state before the last one, which is found anew.
    fn refusal(&self, step: Step, why: String) -> Refusal {
        let (locks, clients) = (self.views.len(), self.clients);
        let mut before = Self::new(self.known.rules.clone(), locks, clients);
        before.blur(self.blur);
        for step in &self.steps {
            // Each of them was accepted.
            let _ = before.take(step);
        }
        before.pass(step.at);
        let lock = step.lock;
        let is_about = |it: &&Step| it.lock == lock || matches!(it.event, Event::Listens(..));
        let mut steps: Vec<_> = self.steps.iter().filter(is_about).cloned().collect();
        steps.push(step);
        Refusal {
            steps,
            before: before.describe(lock).join("\nor\n"),
            why,
        }
    }

    fn describe(&self, lock: usize) -> Vec<String> {
        let states = self.states.iter();
        states.map(|it| it.describe(&self.known, lock)).collect()
    }
}

impl State {
    /// What it may be when so much time has passed: what ends within the blur may have ended or not, and ends once.
    fn at(
        mut self,
        rules: &Rules<u64>,
        lock: usize,
        now: u64,
        passed: u64,
        blur: u64,
    ) -> Vec<Self> {
        let before = self.server.locks[lock].clone();
        let late = std::mem::take(&mut self.late);
        self.server.pass(rules, passed);
        if blur == 0 {
            return vec![self];
        }
        let then = now - passed;
        let mut states = vec![self];
        if let Some(owner) = before.owner {
            // A renewed lease is not late any more.
            let is_late = owner.left == LATE;
            let own = late
                .lease
                .filter(|(token, _)| *token == owner.token && is_late);
            let ends = own.map_or(then + owner.left, |(_, ends)| ends);
            if now.abs_diff(ends) <= blur {
                states = fork(states, |state, ended| {
                    // It ends at its own time, however many steps there are until then.
                    state.server.locks[lock].owner = (!ended).then_some(Owner {
                        left: LATE,
                        ..owner
                    });
                    state.late.lease = (!ended).then_some((owner.token, ends));
                });
            }
        }
        for (client, seen) in before.seen.iter().enumerate() {
            let Some(seen) = *seen else {
                continue;
            };
            let is_late = seen.age == rules.silence;
            let own = late.clients.iter().find(|(of, _)| *of == client && is_late);
            let ends = own.map_or(then + rules.silence - seen.age, |(_, ends)| *ends);
            if now.abs_diff(ends) <= blur {
                states = fork(states, |state, ended| {
                    let age = rules.silence;
                    state.server.locks[lock].seen[client] =
                        (!ended).then_some(Seen { age, ..seen });
                    let late = (!ended).then_some((client, ends));
                    state.late.clients.extend(late);
                });
            }
        }
        states
    }

    /// The server runs a script: what it answers, or writes, and what it publishes is what the rules say.
    fn run(
        &mut self,
        known: &mut Known,
        lock: usize,
        requests: &[Request<u64>],
        outcome: &Outcome,
        grants: &[Grant],
    ) -> Result<(), String> {
        let (mut pushes, mut due, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        for (number, request) in requests.iter().enumerate() {
            let replies = if number == 0 { outcome.replies() } else { &[] };
            self.follow_fences(replies, grants.get(pushes.len()..).unwrap_or_default())?;
            self.follow_positions(known, lock, *request, outcome)?;
            let (ours, before) = (self.is_ours(lock, *request), self.holder(known, lock));
            let reply = self.server.run(known, *request, &mut pushes);
            due.push(answer(reply, ours));
            owners.extend(self.holder(known, lock).filter(|it| Some(*it) != before));
            known.note_fence(reply);
        }
        match outcome {
            Outcome::Replies(replies) if *replies != due => {
                return Err(format!("the reply is {due:?}"));
            }
            Outcome::Writes {
                owners: written, ..
            } if *written != owners => {
                return Err(format!("those that become the owner are {owners:?}"));
            }
            _ => {}
        }
        let due: Vec<_> = pushes.iter().map(|it| known.grant(it)).collect();
        if due != grants {
            return Err(format!("the published grants are {due:?}"));
        }
        known.note_fences(&pushes);
        Ok(())
    }

    /// Who holds a lock.
    fn holder(&self, known: &Known, lock: usize) -> Option<Id> {
        let owner = self.server.locks[lock].owner;
        let holder = owner.filter(|it| it.name == Name::Holder)?;
        Some(known.plan(holder.token.task).token)
    }

    /// Whether a request finds the lock held under its token. A ticket that was issued before is found by `issue`.
    fn is_ours(&self, lock: usize, request: Request<u64>) -> bool {
        let owner = self.server.locks[lock].owner;
        let owner = owner.filter(|it| it.token == request.token());
        owner.is_some_and(|it| match it.name {
            Name::Holder => true,
            Name::Ticket => matches!(request, Request::Issue(_)),
            Name::Cooldown => false,
        })
    }

    /// Fences grow, by as much as the server chooses: calls about other locks may come between.
    fn follow_fences(&mut self, replies: &[Answer], grants: &[Grant]) -> Result<(), String> {
        let granted = replies.iter().filter_map(|it| match it {
            Answer::Granted(fence) => Some(*fence),
            _ => None,
        });
        let Some(first) = granted.chain(grants.iter().map(|it| it.fence)).min() else {
            return Ok(());
        };
        if first <= self.server.fence {
            return Err(format!("fences are above {}", self.server.fence));
        }
        self.server.fence = first - 1;
        Ok(())
    }

    /// #names: a new position is behind those of all waiters, by as much as the server chooses.
    fn follow_positions(
        &mut self,
        known: &Known,
        lock: usize,
        request: Request<u64>,
        outcome: &Outcome,
    ) -> Result<(), String> {
        if !matches!(request, Request::Acquire(_, None)) {
            return Ok(());
        }
        let lock = &mut self.server.locks[lock];
        let last = lock.queue.last().map(|it| it.position);
        // The next one is a rank further.
        let Plan { token, rank, .. } = *known.plan(request.token().task);
        lock.clock = match outcome.position(token) {
            Some(tick) if last.is_some_and(|it| tick <= it.tick) => {
                return Err(format!("a new position is behind {last:?}"));
            }
            Some(tick) => Position {
                tick,
                rank: rank.saturating_sub(1),
            },
            None => last.unwrap_or_default(),
        };
        Ok(())
    }

    fn describe(&self, known: &Known, lock: usize) -> String {
        let token = |it: Token<u64>| known.plan(it.task).token;
        let lock = &self.server.locks[lock];
        let owner = lock
            .owner
            .map(|it| format!("{:?} {:?} for {}", it.name, token(it.token), it.left));
        let queue = lock.queue.iter().map(|it| {
            let client = known.client(it.token.task);
            format!(
                "{:?} of client {client} at {}",
                token(it.token),
                it.position.tick
            )
        });
        format!(
            "owner: {}\nqueue: [{}]\nseen: {:?}\nlistens: {:?}\nfence: {}",
            owner.unwrap_or_else(|| "nobody".into()),
            queue.collect::<Vec<_>>().join(", "),
            lock.seen,
            self.server.listens,
            self.server.fence
        )
    }
}

/// What is left of a lease that has not ended at its time.
const LATE: u64 = 1;

/// Each of these states, where something has ended and where it has not.
fn fork(states: Vec<State>, set: impl Fn(&mut State, bool)) -> Vec<State> {
    let both = states.into_iter().flat_map(|state| {
        [false, true].map(|ended| {
            let mut state = state.clone();
            set(&mut state, ended);
            state
        })
    });
    both.collect()
}

/// How many steps are printed at most.
const PRINTED: usize = 50;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (last, before) = self.steps.split_last().ok_or(fmt::Error)?;
        let number = self.steps.len();
        writeln!(f, "the model refuses step {number} of lock {}", last.lock)?;
        let left_out = before.len().saturating_sub(PRINTED);
        if left_out > 0 {
            writeln!(f, "  {left_out} steps before")?;
        }
        for step in &before[left_out..] {
            writeln!(f, "  {step}")?;
        }
        writeln!(f, "state before the refused step:")?;
        for line in self.before.lines() {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "refused:\n  {last}")?;
        write!(f, "by the model: {}", self.why)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.at, self.event)
    }
}

/// What the reply looks like in a run.
fn answer(reply: Reply<u64>, ours: bool) -> Answer {
    match reply {
        Reply::Granted(_, fence) => Answer::Granted(fence),
        Reply::Waiting(_, position) => Answer::Waiting(position.map(|it| it.tick)),
        Reply::Gone(_) => Answer::Gone,
        Reply::Renewed(_, ours) => Answer::Ours(ours),
        Reply::Refused(_) => Answer::Refused,
        Reply::Released(_) => Answer::Ours(ours),
    }
}

fn index(task: u64) -> usize {
    usize::try_from(task).unwrap_or(usize::MAX)
}
