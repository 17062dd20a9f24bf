//! The server: what its scripts do to the keys of a lock, each in one step. `#…` names the section of docs/protocol.md
//! that has the rule.

use super::Scenario;
use super::rules::Bug;

/// What tells one acquisition from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token {
    /// The number of the task that made it.
    pub task: u8,
    /// Which of the task's tokens it is.
    pub attempt: u8,
}

/// A place in the queue; smaller is earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The tick in which it was given: positions of one tick are within the window of 1 ms.
    pub tick: u8,
    /// Its number among all positions.
    pub rank: u8,
}

/// The key *owner*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Whose it is, or was.
    pub token: Token,
    /// Under what name.
    pub name: Name,
    /// The ticks until it expires.
    pub left: u8,
}

/// #names: what the value of *owner* begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// The token of a holder.
    Holder,
    /// `-`: a cooldown.
    Cooldown,
    /// `=`: a ticket.
    Ticket,
}

/// A member of the key *queue*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Waiter {
    /// Its score.
    pub position: Position,
    /// Who waits. The token stands for kind, ttl and channel too.
    pub token: Token,
}

/// The keys of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    /// The key *owner*.
    pub owner: Option<Owner>,
    /// The key *queue*, by position.
    pub queue: Vec<Waiter>,
    /// The key *seen*: for each client, how many ticks ago it last asked or joined, until it counts as silent.
    pub seen: Vec<Option<u8>>,
    /// The latest position.
    pub clock: Position,
}

/// A Redis server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// The keys of each lock.
    pub locks: Vec<Lock>,
    /// The key *fence*.
    pub fence: u8,
    /// For each client, whether its channel has a subscriber, as far as the server knows.
    pub listens: Vec<bool>,
    /// The ticks for which a quarantine lasts, since the server started.
    pub young: u8,
    /// Whether it lost its data when it started.
    pub forgot: bool,
}

/// A call of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// `acquire`, with an earlier position.
    Acquire(Token, Option<Position>),
    /// `ask` about one member.
    Ask(Token),
    /// `renew` with this ttl.
    Renew(Token, u8),
    /// `renew` with a ttl of 1 ms, or of this cooldown: a release during a quarantine.
    Shorten(Token, u8),
    /// `release` with the member, so that it also leaves the queue.
    Release(Token),
    /// `release` with a cooldown.
    CoolDown(Token),
    /// `acquire` without a channel, to try once.
    Try(Token),
    /// `issue`.
    Issue(Token),
    /// `adopt` of the ticket that this task has issued.
    Adopt(Token, u8),
}

/// What a script replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The token holds the lock, with this fence.
    Granted(Token, u8),
    /// The token is in the queue; `acquire` says at which position.
    Waiting(Token, Option<Position>),
    /// The token is neither a holder nor in the queue.
    Gone(Token),
    /// Whether the lease was extended.
    Renewed(Token, bool),
    /// The token does not hold the lock any more.
    Released(Token),
    /// Somebody else has the lock, or there is no such ticket.
    Refused(Token),
}

/// The message that grants a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Push {
    /// Who holds the lock.
    pub token: Token,
    /// Its fence.
    pub fence: u8,
    /// Who gets the lock together with it, with their fences.
    pub followers: Vec<(Token, u8)>,
}

impl Request {
    /// Whom it is about.
    pub fn token(mut self) -> Token {
        *self.token_mut()
    }

    /// Whom it is about.
    pub fn token_mut(&mut self) -> &mut Token {
        let (Self::Acquire(token, _)
        | Self::Ask(token)
        | Self::Renew(token, _)
        | Self::Shorten(token, _)
        | Self::Release(token)
        | Self::CoolDown(token)
        | Self::Try(token)
        | Self::Issue(token)
        | Self::Adopt(token, _)) = self;
        token
    }
}

impl Reply {
    /// Whom it is about.
    pub fn token(mut self) -> Token {
        *self.token_mut()
    }

    /// Whom it is about.
    pub fn token_mut(&mut self) -> &mut Token {
        let (Self::Granted(token, _)
        | Self::Waiting(token, _)
        | Self::Gone(token)
        | Self::Renewed(token, _)
        | Self::Released(token)
        | Self::Refused(token)) = self;
        token
    }
}

impl Lock {
    /// #names: a new position is larger than those of all waiters.
    fn next_position(&mut self) -> Position {
        self.clock.rank += 1;
        self.clock
    }
}

impl Server {
    /// A server that has been up for long.
    pub fn new(locks: usize, clients: usize) -> Self {
        let lock = Lock {
            owner: None,
            queue: Vec::new(),
            seen: vec![None; clients],
            clock: Position::default(),
        };
        Self {
            locks: vec![lock; locks],
            fence: 0,
            listens: vec![true; clients],
            young: 0,
            forgot: false,
        }
    }

    /// Runs one script. What it publishes is added to `pushes`.
    pub fn run(&mut self, scenario: &Scenario, request: Request, pushes: &mut Vec<Push>) -> Reply {
        let token = request.token();
        let key = scenario.lock(token.task);
        match request {
            Request::Acquire(_, position) => self.acquire(scenario, key, token, position, pushes),
            Request::Ask(_) => self.ask(scenario, key, token, pushes),
            Request::Renew(_, ttl) => Reply::Renewed(token, self.extend(key, token, ttl)),
            Request::Shorten(_, ttl) => {
                if self.holds(scenario, key, token) {
                    self.locks[key].owner = Some(Owner {
                        token,
                        name: Name::Holder,
                        left: ttl,
                    })
                    .filter(|_| ttl > 0);
                }
                Reply::Released(token)
            }
            Request::Try(_) => self.try_once(scenario, key, token, pushes),
            Request::Issue(_) => {
                self.issue(scenario, key, token);
                Reply::Released(token)
            }
            Request::Adopt(_, issuer) => self.adopt(scenario, key, token, issuer),
            Request::Release(_) | Request::CoolDown(_) => {
                self.release(scenario, key, request, pushes);
                Reply::Released(token)
            }
        }
    }

    /// #what-each-one-does: acquire, to wait.
    fn acquire(
        &mut self,
        scenario: &Scenario,
        key: usize,
        token: Token,
        position: Option<Position>,
        pushes: &mut Vec<Push>,
    ) -> Reply {
        // 1. If the name holds the lock, its lease is extended.
        if self.extend(key, token, scenario.rules.ttl) {
            return Reply::Granted(token, self.next_fence());
        }
        // 2. If it may enter and the queue is empty: granted.
        let passes = scenario.rules.breaks(Bug::NewcomerPasses);
        if self.locks[key].owner.is_none() && (self.locks[key].queue.is_empty() || passes) {
            return self.grant(scenario, key, token);
        }
        // 4. It joins the queue with ZADD NX, notes its channel in *seen*, and dispatches.
        let position = position.unwrap_or_else(|| self.locks[key].next_position());
        let lock = &mut self.locks[key];
        if lock.queue.iter().all(|it| it.token != token) {
            lock.queue.push(Waiter { position, token });
            lock.queue.sort_unstable();
        }
        lock.seen[scenario.client(token.task)] = Some(0);
        self.dispatch(scenario, key, pushes);
        // 5. If it was granted meanwhile, its lease is extended to the ttl.
        if self.extend(key, token, scenario.rules.ttl) {
            return Reply::Granted(token, self.fence_of(token, pushes));
        }
        // 6. If the lock is free and the member is not in the queue, its own channel had no listener.
        let lock = &self.locks[key];
        if lock.owner.is_none() && lock.queue.iter().all(|it| it.token != token) {
            return Reply::Gone(token);
        }
        Reply::Waiting(token, Some(position))
    }

    /// #what-each-one-does: acquire, to try once.
    fn try_once(
        &mut self,
        scenario: &Scenario,
        key: usize,
        token: Token,
        pushes: &mut Vec<Push>,
    ) -> Reply {
        if self.extend(key, token, scenario.rules.ttl) {
            return Reply::Granted(token, self.next_fence());
        }
        // 4. It dispatches. 7. Granted if it may enter and the queue is empty, else `busy`.
        self.dispatch(scenario, key, pushes);
        if self.locks[key].owner.is_none() && self.locks[key].queue.is_empty() {
            return self.grant(scenario, key, token);
        }
        Reply::Refused(token)
    }

    /// A lock that is free, for the whole ttl.
    fn grant(&mut self, scenario: &Scenario, key: usize, token: Token) -> Reply {
        self.locks[key].owner = Some(Owner {
            token,
            name: Name::Holder,
            left: scenario.rules.ttl,
        });
        Reply::Granted(token, self.next_fence())
    }

    /// #what-each-one-does: issue. Where the ticket stands already, its time stays as it is.
    fn issue(&mut self, scenario: &Scenario, key: usize, token: Token) {
        if let Some(owner) = self.locks[key]
            .owner
            .filter(|_| self.holds(scenario, key, token))
        {
            let left = if scenario.rules.breaks(Bug::TicketEndsWithTheLease) {
                owner.left
            } else {
                scenario.rules.ticket
            };
            self.locks[key].owner = Some(Owner {
                token,
                name: Name::Ticket,
                left,
            });
        }
    }

    /// #what-each-one-does: adopt, whoever waits for the lock.
    fn adopt(&mut self, scenario: &Scenario, key: usize, token: Token, issuer: u8) -> Reply {
        if self.extend(key, token, scenario.rules.ttl) {
            return Reply::Granted(token, self.next_fence());
        }
        let is_ours = |it: &Owner| it.name == Name::Ticket && it.token.task == issuer;
        if self.locks[key].owner.as_ref().is_some_and(is_ours)
            || scenario.rules.breaks(Bug::AdoptedWithoutTicket)
        {
            return self.grant(scenario, key, token);
        }
        Reply::Refused(token)
    }

    /// #what-each-one-does: ask. It never joins the queue.
    fn ask(
        &mut self,
        scenario: &Scenario,
        key: usize,
        token: Token,
        pushes: &mut Vec<Push>,
    ) -> Reply {
        if !self.locks[key].queue.is_empty() {
            self.locks[key].seen[scenario.client(token.task)] = Some(0);
        }
        self.dispatch(scenario, key, pushes);
        if self.extend(key, token, scenario.rules.ttl) {
            return Reply::Granted(token, self.fence_of(token, pushes));
        }
        // #chains: `waiting` also for followers that this call has taken out of the queue.
        let follows = pushes
            .iter()
            .flat_map(|it| &it.followers)
            .any(|(it, _)| *it == token);
        if follows || self.locks[key].queue.iter().any(|it| it.token == token) {
            return Reply::Waiting(token, None);
        }
        Reply::Gone(token)
    }

    /// #what-each-one-does: release.
    fn release(
        &mut self,
        scenario: &Scenario,
        key: usize,
        request: Request,
        pushes: &mut Vec<Push>,
    ) {
        let token = request.token();
        let holds = self.holds(scenario, key, token);
        let lock = &mut self.locks[key];
        if matches!(request, Request::Release(_)) {
            lock.queue.retain(|it| it.token != token);
        }
        if !holds {
            return;
        }
        lock.owner = None;
        if matches!(request, Request::CoolDown(_)) {
            // With a cooldown the owner becomes `-` and the name: nobody finds it under its name.
            let name = if scenario.rules.breaks(Bug::CooldownUnderItsName) {
                Name::Holder
            } else {
                Name::Cooldown
            };
            lock.owner = Some(Owner {
                token,
                name,
                left: scenario.rules.cooldown,
            });
            return;
        }
        self.dispatch(scenario, key, pushes);
    }

    /// It does not touch the locks of others.
    fn holds(&self, scenario: &Scenario, key: usize, token: Token) -> bool {
        let is_ours = |it: &Owner| {
            it.token == token && it.name == Name::Holder
                || scenario.rules.breaks(Bug::ReleaseOfAnybody)
        };
        self.locks[key].owner.as_ref().is_some_and(is_ours)
    }

    /// #what-each-one-does: renew. It never creates a key.
    fn extend(&mut self, key: usize, token: Token, ttl: u8) -> bool {
        match &mut self.locks[key].owner {
            Some(owner) if owner.token == token && owner.name == Name::Holder => {
                owner.left = ttl;
                true
            }
            _ => false,
        }
    }

    /// #what-each-one-does: dispatch.
    fn dispatch(&mut self, scenario: &Scenario, key: usize, pushes: &mut Vec<Push>) {
        let rules = &scenario.rules;
        while self.locks[key].owner.is_none() && !self.locks[key].queue.is_empty() {
            let at = if rules.breaks(Bug::LastComesFirst) {
                self.locks[key].queue.len() - 1
            } else {
                0
            };
            let first = self.locks[key].queue.remove(at).token;
            let client = scenario.client(first.task);
            // 1. Whose channel was noted too long ago, or not at all, is skipped.
            if self.locks[key].seen[client].is_none() {
                continue;
            }
            // 4. If nobody receives the message, the lock is taken back, and the next one gets it.
            if !self.listens[client] {
                continue;
            }
            // 3. A fence for the first and one for each follower; a holder for its ttl or 3 s.
            let fence = self.next_fence();
            let followers = self.followers(scenario, key, first);
            self.locks[key].owner = Some(Owner {
                token: first,
                name: Name::Holder,
                left: rules.ttl.min(rules.claim),
            });
            pushes.push(Push {
                token: first,
                fence,
                followers,
            });
        }
        // When the queue is empty, *seen* is removed.
        if self.locks[key].queue.is_empty() {
            self.locks[key].seen.fill(None);
        }
    }

    /// #chains: takes out of the queue those who get the lock together with the first.
    fn followers(&mut self, scenario: &Scenario, key: usize, first: Token) -> Vec<(Token, u8)> {
        let mut followers = Vec::new();
        if !scenario.chains(first.task) {
            return followers;
        }
        let mut latest = None;
        for waiter in std::mem::take(&mut self.locks[key].queue) {
            let follows = scenario.chains(waiter.token.task)
                && scenario.client(waiter.token.task) == scenario.client(first.task);
            // Behind the first waiter that is left out, only those follow that joined within the window.
            let in_time = latest.is_none_or(|latest| waiter.position.tick <= latest)
                || scenario.rules.breaks(Bug::FollowersOvertake);
            if follows && in_time {
                followers.push((waiter.token, self.next_fence()));
            } else {
                latest = latest.or(Some(waiter.position.tick));
                self.locks[key].queue.push(waiter);
            }
        }
        followers
    }

    /// #what-each-one-does: the next fence.
    fn next_fence(&mut self) -> u8 {
        self.fence += 1;
        self.fence
    }

    /// The fence that this script has pushed to the token; a new one where it held the lock before.
    fn fence_of(&mut self, token: Token, pushes: &[Push]) -> u8 {
        let known = pushes
            .iter()
            .find(|it| it.token == token)
            .map(|it| it.fence);
        known.unwrap_or_else(|| self.next_fence())
    }

    /// Starts again, with its data or without.
    pub fn restart(&mut self, scenario: &Scenario, forgets: bool) {
        self.listens.fill(false);
        self.young = scenario.rules.ttl;
        self.forgot |= forgets;
        if forgets {
            for lock in &mut self.locks {
                lock.owner = None;
                lock.queue.clear();
                lock.seen.fill(None);
            }
            // #opening-a-connection: `open` sets the counter to the server's time, which is ahead of any number that it had reached.
            if scenario.rules.breaks(Bug::CounterStartsAnew) {
                self.fence = 0;
            }
        }
    }

    /// Time passes.
    pub fn tick(&mut self, scenario: &Scenario) {
        self.young = self.young.saturating_sub(1);
        self.forgot &= self.young > 0;
        for lock in &mut self.locks {
            lock.clock.tick += 1;
            if let Some(owner) = &mut lock.owner {
                owner.left -= 1;
                if owner.left == 0 {
                    lock.owner = None;
                }
            }
            for seen in &mut lock.seen {
                *seen = seen
                    .map(|age| age + 1)
                    .filter(|age| *age <= scenario.rules.silence);
            }
        }
    }
}
