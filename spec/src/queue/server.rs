//! The server: what its scripts do to the keys of a lock, each in one step. `#…` names the section of docs/protocol.md
//! that has the rule.

use super::rules::{Bug, Rules};
use super::setting::{Company, Number, Setting};

/// What tells one acquisition from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token<N = u8> {
    /// The number of the task that made it.
    pub task: N,
    /// Which of the task's tokens it is.
    pub attempt: N,
}

/// A place in the queue; smaller is earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position<N = u8> {
    /// The tick in which it was given: positions of one tick are within the window of 1 ms.
    pub tick: N,
    /// Its number among all positions.
    pub rank: N,
}

/// The key *owner*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner<N = u8> {
    /// Whose it is, or was.
    pub token: Token<N>,
    /// Under what name.
    pub name: Name,
    /// The ticks until it expires.
    pub left: N,
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

/// A member of the key *seen*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seen<N = u8> {
    /// How many ticks ago the client last asked or joined.
    pub age: N,
    /// #chains: whether more of it wait, as it said when one of them last joined.
    pub more: bool,
}

/// A member of the key *queue*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Waiter<N = u8> {
    /// Its score.
    pub position: Position<N>,
    /// Who waits. The token stands for kind, ttl and channel too.
    pub token: Token<N>,
}

/// The keys of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lock<N = u8> {
    /// The key *owner*.
    pub owner: Option<Owner<N>>,
    /// The key *queue*, by position.
    pub queue: Vec<Waiter<N>>,
    /// The key *seen*: for each client that does not count as silent.
    pub seen: Vec<Option<Seen<N>>>,
    /// The latest position.
    pub clock: Position<N>,
}

/// A Redis server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server<N = u8> {
    /// The keys of each lock.
    pub locks: Vec<Lock<N>>,
    /// The key *fence*.
    pub fence: N,
    /// For each client, whether its channel has a subscriber, as far as the server knows.
    pub listens: Vec<bool>,
    /// The ticks for which a quarantine lasts, since the server started.
    pub young: N,
    /// Whether it lost its data when it started.
    pub forgot: bool,
}

/// A call of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request<N = u8> {
    /// `acquire`, with an earlier position.
    Acquire(Token<N>, Option<Position<N>>),
    /// `ask` about one member.
    Ask(Token<N>),
    /// `renew` with this ttl.
    Renew(Token<N>, N),
    /// `renew` with a ttl of 1 ms, or of this cooldown: a release during a quarantine.
    Shorten(Token<N>, N),
    /// `release` with the member, so that it also leaves the queue.
    Release(Token<N>),
    /// `release` with a cooldown.
    CoolDown(Token<N>),
    /// `acquire` without a channel, to try once.
    Try(Token<N>),
    /// `issue`.
    Issue(Token<N>),
    /// `adopt` of the ticket that this task has issued.
    Adopt(Token<N>, N),
}

/// What a script replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply<N = u8> {
    /// The token holds the lock, with this fence.
    Granted(Token<N>, N),
    /// The token is in the queue; `acquire` says at which position.
    Waiting(Token<N>, Option<Position<N>>),
    /// The token is neither a holder nor in the queue.
    Gone(Token<N>),
    /// Whether the lease was extended.
    Renewed(Token<N>, bool),
    /// The token does not hold the lock any more.
    Released(Token<N>),
    /// Somebody else has the lock, or there is no such ticket.
    Refused(Token<N>),
}

/// The message that grants a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Push<N = u8> {
    /// Who holds the lock.
    pub token: Token<N>,
    /// Its fence.
    pub fence: N,
    /// Who gets the lock together with it, with their fences.
    pub followers: Vec<(Token<N>, N)>,
}

impl<N: Number> Request<N> {
    /// Whom it is about.
    pub fn token(mut self) -> Token<N> {
        *self.token_mut()
    }

    /// Whom it is about.
    pub fn token_mut(&mut self) -> &mut Token<N> {
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

impl<N: Number> Reply<N> {
    /// Whom it is about.
    pub fn token(mut self) -> Token<N> {
        *self.token_mut()
    }

    /// Whom it is about.
    pub fn token_mut(&mut self) -> &mut Token<N> {
        let (Self::Granted(token, _)
        | Self::Waiting(token, _)
        | Self::Gone(token)
        | Self::Renewed(token, _)
        | Self::Released(token)
        | Self::Refused(token)) = self;
        token
    }
}

impl<N: Number> Lock<N> {
    /// #names: a new position is larger than those of all waiters.
    fn next_position(&mut self) -> Position<N> {
        self.clock.rank += N::from(1);
        self.clock
    }
}

impl<N: Number> Server<N> {
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
            fence: N::default(),
            listens: vec![true; clients],
            young: N::default(),
            forgot: false,
        }
    }

    /// Runs one script. What it publishes is added to `pushes`.
    pub fn run(
        &mut self,
        setting: &impl Setting<N>,
        request: Request<N>,
        pushes: &mut Vec<Push<N>>,
    ) -> Reply<N> {
        let token = request.token();
        let key = setting.lock(token.task);
        match request {
            Request::Acquire(_, position) => self.acquire(setting, key, token, position, pushes),
            Request::Ask(_) => self.ask(setting, key, token, pushes),
            Request::Renew(_, ttl) => Reply::Renewed(token, self.extend(key, token, ttl)),
            Request::Shorten(_, ttl) => {
                if self.holds(setting, key, token) {
                    self.locks[key].owner = Some(Owner {
                        token,
                        name: Name::Holder,
                        left: ttl,
                    })
                    .filter(|_| ttl > N::default());
                }
                Reply::Released(token)
            }
            Request::Try(_) => self.try_once(setting, key, token, pushes),
            Request::Issue(_) => {
                self.issue(setting, key, token);
                Reply::Released(token)
            }
            Request::Adopt(_, issuer) => self.adopt(setting, key, token, issuer),
            Request::Release(_) | Request::CoolDown(_) => {
                self.release(setting, key, request, pushes);
                Reply::Released(token)
            }
        }
    }

    /// #what-each-one-does: acquire, to wait.
    fn acquire(
        &mut self,
        setting: &impl Setting<N>,
        key: usize,
        token: Token<N>,
        position: Option<Position<N>>,
        pushes: &mut Vec<Push<N>>,
    ) -> Reply<N> {
        // 1. If the name holds the lock, its lease is extended.
        if self.extend(key, token, setting.ttl(token.task)) {
            return Reply::Granted(token, self.next_fence());
        }
        // 2. If it may enter and the queue is empty: granted.
        let passes = setting.breaks(Bug::NewcomerPasses);
        if self.locks[key].owner.is_none() && (self.locks[key].queue.is_empty() || passes) {
            return self.grant(setting, key, token);
        }
        // 4. It joins the queue with ZADD NX, notes its channel in *seen*, and dispatches.
        let position = position.unwrap_or_else(|| self.locks[key].next_position());
        let lock = &mut self.locks[key];
        if lock.queue.iter().all(|it| it.token != token) {
            lock.queue.push(Waiter { position, token });
            lock.queue.sort_unstable();
        }
        lock.seen[setting.client(token.task)] = Some(Seen {
            age: N::default(),
            more: setting.company(token.task) == Company::More,
        });
        self.dispatch(setting, key, pushes);
        // 5. If it was granted meanwhile, its lease is extended to the ttl.
        if self.extend(key, token, setting.ttl(token.task)) {
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
        setting: &impl Setting<N>,
        key: usize,
        token: Token<N>,
        pushes: &mut Vec<Push<N>>,
    ) -> Reply<N> {
        if self.extend(key, token, setting.ttl(token.task)) {
            return Reply::Granted(token, self.next_fence());
        }
        // 4. It dispatches. 7. Granted if it may enter and the queue is empty, else `busy`.
        self.dispatch(setting, key, pushes);
        if self.locks[key].owner.is_none() && self.locks[key].queue.is_empty() {
            return self.grant(setting, key, token);
        }
        Reply::Refused(token)
    }

    /// A lock that is free, for the whole ttl.
    fn grant(&mut self, setting: &impl Setting<N>, key: usize, token: Token<N>) -> Reply<N> {
        self.locks[key].owner = Some(Owner {
            token,
            name: Name::Holder,
            left: setting.ttl(token.task),
        });
        Reply::Granted(token, self.next_fence())
    }

    /// #what-each-one-does: issue. Where the ticket stands already, its time stays as it is.
    fn issue(&mut self, setting: &impl Setting<N>, key: usize, token: Token<N>) {
        if let Some(owner) = self.locks[key]
            .owner
            .filter(|_| self.holds(setting, key, token))
        {
            let left = if setting.breaks(Bug::TicketEndsWithTheLease) {
                owner.left
            } else {
                setting.ticket(token.task)
            };
            self.locks[key].owner = Some(Owner {
                token,
                name: Name::Ticket,
                left,
            });
        }
    }

    /// #what-each-one-does: adopt, whoever waits for the lock.
    fn adopt(
        &mut self,
        setting: &impl Setting<N>,
        key: usize,
        token: Token<N>,
        issuer: N,
    ) -> Reply<N> {
        if self.extend(key, token, setting.ttl(token.task)) {
            return Reply::Granted(token, self.next_fence());
        }
        let is_ours = |it: &Owner<N>| it.name == Name::Ticket && it.token.task == issuer;
        if self.locks[key].owner.as_ref().is_some_and(is_ours)
            || setting.breaks(Bug::AdoptedWithoutTicket)
        {
            return self.grant(setting, key, token);
        }
        Reply::Refused(token)
    }

    /// #what-each-one-does: ask. It never joins the queue.
    fn ask(
        &mut self,
        setting: &impl Setting<N>,
        key: usize,
        token: Token<N>,
        pushes: &mut Vec<Push<N>>,
    ) -> Reply<N> {
        if !self.locks[key].queue.is_empty() {
            let seen = &mut self.locks[key].seen[setting.client(token.task)];
            *seen = Some(Seen {
                age: N::default(),
                more: seen.is_some_and(|it| it.more),
            });
        }
        self.dispatch(setting, key, pushes);
        if self.extend(key, token, setting.ttl(token.task)) {
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
        setting: &impl Setting<N>,
        key: usize,
        request: Request<N>,
        pushes: &mut Vec<Push<N>>,
    ) {
        let token = request.token();
        let holds = self.holds(setting, key, token);
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
            let name = if setting.breaks(Bug::CooldownUnderItsName) {
                Name::Holder
            } else {
                Name::Cooldown
            };
            lock.owner = Some(Owner {
                token,
                name,
                left: setting.cooldown(token.task),
            });
            return;
        }
        self.dispatch(setting, key, pushes);
    }

    /// It does not touch the locks of others.
    fn holds(&self, setting: &impl Setting<N>, key: usize, token: Token<N>) -> bool {
        let is_ours = |it: &Owner<N>| {
            it.token == token && it.name == Name::Holder || setting.breaks(Bug::ReleaseOfAnybody)
        };
        self.locks[key].owner.as_ref().is_some_and(is_ours)
    }

    /// #what-each-one-does: renew. It never creates a key.
    fn extend(&mut self, key: usize, token: Token<N>, ttl: N) -> bool {
        match &mut self.locks[key].owner {
            Some(owner) if owner.token == token && owner.name == Name::Holder => {
                owner.left = ttl;
                true
            }
            _ => false,
        }
    }

    /// #what-each-one-does: dispatch.
    fn dispatch(&mut self, setting: &impl Setting<N>, key: usize, pushes: &mut Vec<Push<N>>) {
        let claim = setting.rules().claim;
        while self.locks[key].owner.is_none() && !self.locks[key].queue.is_empty() {
            let at = if setting.breaks(Bug::LastComesFirst) {
                self.locks[key].queue.len() - 1
            } else {
                0
            };
            let first = self.locks[key].queue.remove(at).token;
            let client = setting.client(first.task);
            // 1. Whose channel was noted too long ago, or not at all, is skipped.
            if self.locks[key].seen[client].is_none() {
                continue;
            }
            // #chains: the followers leave the queue before the message shows whether anybody receives it.
            let followers = self.followers(setting, key, first);
            // 4. If nobody receives the message, the lock is taken back, and the next one gets it.
            if !self.listens[client] {
                continue;
            }
            // 3. A fence for the first and one for each follower; a holder for its ttl or 3 s.
            let fence = self.next_fence();
            let followers = followers
                .into_iter()
                .map(|it| (it, self.next_fence()))
                .collect();
            self.locks[key].owner = Some(Owner {
                token: first,
                name: Name::Holder,
                left: setting.ttl(first.task).min(claim),
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
    fn followers(
        &mut self,
        setting: &impl Setting<N>,
        key: usize,
        first: Token<N>,
    ) -> Vec<Token<N>> {
        let (client, rules) = (setting.client(first.task), setting.rules());
        let alone = |task| setting.company(task) == Company::Alone;
        let mut followers = Vec::new();
        if alone(first.task) || !self.locks[key].seen[client].is_some_and(|it| it.more) {
            return followers;
        }
        let mut latest = None;
        for (at, waiter) in (0..).zip(std::mem::take(&mut self.locks[key].queue)) {
            let task = waiter.token.task;
            let follows = !alone(task)
                && (setting.client(task), setting.ttl(task)) == (client, setting.ttl(first.task));
            // Behind the first waiter that is left out, only those follow that joined within the window.
            let in_time = latest.is_none_or(|latest| waiter.position.tick <= latest + rules.window)
                || setting.breaks(Bug::FollowersOvertake);
            if follows && in_time && at < rules.followers {
                followers.push(waiter.token);
            } else {
                latest = latest.or(Some(waiter.position.tick));
                self.locks[key].queue.push(waiter);
            }
        }
        followers
    }

    /// #what-each-one-does: the next fence.
    fn next_fence(&mut self) -> N {
        self.fence += N::from(1);
        self.fence
    }

    /// The fence that this script has pushed to the token; a new one where it held the lock before.
    fn fence_of(&mut self, token: Token<N>, pushes: &[Push<N>]) -> N {
        let known = pushes
            .iter()
            .find(|it| it.token == token)
            .map(|it| it.fence);
        known.unwrap_or_else(|| self.next_fence())
    }

    /// Starts again, with its data or without.
    pub fn restart(&mut self, setting: &impl Setting<N>, forgets: bool) {
        self.listens.fill(false);
        self.young = setting.rules().ttl;
        self.forgot |= forgets;
        if forgets {
            for lock in &mut self.locks {
                lock.owner = None;
                lock.queue.clear();
                lock.seen.fill(None);
            }
            // #opening-a-connection: `open` sets the counter to the server's time, which is ahead of any number that it had reached.
            if setting.breaks(Bug::CounterStartsAnew) {
                self.fence = N::default();
            }
        }
    }

    /// Time passes.
    pub fn pass(&mut self, rules: &Rules<N>, time: N) {
        self.young = self.young - self.young.min(time);
        self.forgot &= self.young > N::default();
        for lock in &mut self.locks {
            lock.clock.tick += time;
            lock.owner = lock.owner.filter(|it| it.left > time);
            if let Some(owner) = &mut lock.owner {
                owner.left = owner.left - time;
            }
            for seen in &mut lock.seen {
                *seen = seen.filter(|it| it.age + time <= rules.silence);
                if let Some(seen) = seen {
                    seen.age += time;
                }
            }
        }
    }
}
