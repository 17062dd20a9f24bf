//! A model of the server: what the scripts do, in Rust, on the simulation's
//! clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Store;
use super::chains::WINDOW;
use super::knowing::Known;
use crate::backend::queue::protocol::ahead::Ahead;
use crate::backend::queue::protocol::call::{Bearer, Company};
use crate::backend::queue::protocol::message::Grant;
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::redis::protocol::call::Call;
use crate::backend::redis::protocol::reply::Reply;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::crowd::Crowd;
use crate::types::fence::FencingToken;
use crate::types::holder;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::ticket_id::TicketId;

pub(super) const CLAIM_TTL: Duration = Duration::from_secs(3);
pub(super) const SILENCE: Duration = Duration::from_secs(3);

/// By how much the clock of a server that is right is ahead of the clients'.
pub(super) const AHEAD: Duration = Duration::from_secs(3600);

/// Who waits with less may give up, and stay: its leave is sent for three ttls, and connections may break for as long.
const BRIEF: Duration = Duration::from_secs(2);

/// One server and its locks.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) fence: u64,
    /// Where it has to know who of a chain holds the lock.
    known: Option<Known>,
    /// By how much its clock is ahead of the clients'.
    pub(super) ahead: Duration,
    /// Until when it may end leases early, since its clock has jumped forward.
    pub(super) hasty_until: Moment,
    /// Shared with what replicas know.
    locks: BTreeMap<LockKey, Arc<Lock>>,
    /// Which clients a message reaches.
    pub(super) listeners: BTreeSet<usize>,
    /// Messages to be delivered, and to whom.
    pub(super) published: Vec<(usize, Grant)>,
    /// Until when it does nothing.
    pub(super) paused_until: Moment,
    /// Until when it grants nothing, since it has forgotten locks.
    pub(super) quarantined_until: Moment,
}

#[derive(Clone, Default)]
pub(super) struct Lock {
    holders: Vec<Holder>,
    pub(super) queue: BTreeMap<(u64, String), Member>,
    seen: BTreeMap<usize, Moment>,
    /// By how many microseconds positions are ahead of a clock that has gone back.
    behind: u64,
    /// The clients of whom more wait.
    pub(super) crowded: BTreeSet<usize>,
}

#[derive(Clone)]
struct Holder {
    /// `None` once it has let go and the lock cools down, or a ticket keeps it closed.
    token: Option<Token>,
    issued: Option<TicketId>,
    client: usize,
    kind: Kind,
    until: Moment,
    /// Its fence and what it publishes, once a renewal has noted them.
    leads: Option<(u64, Arc<str>)>,
}

#[derive(Clone)]
pub(super) struct Member {
    token: Token,
    pub(super) client: usize,
    pub(super) kind: Kind,
    pub(super) ttl: Duration,
    pub(super) company: Company,
}

impl Server {
    /// One of this store.
    pub(super) fn of(store: Store, now: Moment) -> Self {
        Self {
            known: (store == Store::Knowing).then(Known::default),
            ..Self::new(now)
        }
    }

    /// One without data, whose counter is raised to its clock.
    pub(super) fn new(now: Moment) -> Self {
        Self {
            fence: now.as_nanos() / 1000 + fastrand::u64(..1000),
            known: None,
            ahead: AHEAD,
            hasty_until: now,
            locks: BTreeMap::new(),
            listeners: BTreeSet::new(),
            published: Vec::new(),
            paused_until: now,
            quarantined_until: now,
        }
    }

    /// What its clock shows.
    fn shows(&self, now: Moment) -> Moment {
        now.after(self.ahead)
    }

    /// The leases there, by key and token, and when they end by the clients' clock.
    pub(super) fn leases(&self, now: Moment) -> Vec<(LockKey, Token, Moment)> {
        let ahead = u64::try_from(self.ahead.as_nanos()).unwrap_or(u64::MAX);
        let mut leases = Vec::new();
        for (key, lock) in &self.locks {
            for Holder { token, until, .. } in &lock.holders {
                let ends = Moment::from_nanos(until.as_nanos().saturating_sub(ahead));
                if let Some(token) = token.filter(|_| now < ends) {
                    leases.push((key.clone(), token, ends));
                }
            }
        }
        leases
    }

    /// Who has a lock, or waits for one that is not brief.
    pub(super) fn tokens(&self, now: Moment) -> impl Iterator<Item = (usize, Token)> {
        let now = self.shows(now);
        self.locks.values().flat_map(move |lock| {
            let holders = lock.holders.iter().filter(move |it| now < it.until);
            let holders = holders.filter_map(|it| Some((it.client, it.token?)));
            let waiters = lock.queue.values().filter(|it| it.ttl >= BRIEF);
            let waiters = waiters.map(|it| (it.client, it.token));
            holders.chain(waiters)
        })
    }

    /// Executes one call of a client's.
    pub(super) fn execute(&mut self, now: Moment, client: usize, call: &Call) -> Reply {
        let now = self.shows(now);
        match call {
            Call::Acquire {
                bearer,
                position,
                company,
            } => self.acquire(now, client, bearer, *position, *company),
            Call::Ask(bearers) => self.ask(now, client, bearers),
            Call::Renew { bearer, note } => {
                let ours = self.lock(now, bearer).extend(now, bearer);
                if let Some(note) = note.filter(|_| ours) {
                    self.lock(now, bearer).note_leader(bearer, note.fence);
                }
                Reply::Ours(ours)
            }
            Call::Pass { bearer, fence } => Reply::Ours(self.pass(now, bearer, *fence)),
            Call::Raise { bearer, fence } => {
                let ours = self.lock(now, bearer).extend(now, bearer);
                if ours {
                    self.fence = self.fence.max(*fence);
                }
                Reply::Ours(ours)
            }
            Call::Shorten { bearer, left } => {
                Reply::Ours(self.lock(now, bearer).ends_after(now, bearer, *left))
            }
            Call::Release {
                bearer, cooldown, ..
            } => {
                let key = &bearer.terms.key;
                Reply::Ours(self.release(now, key, bearer.token, *cooldown, false))
            }
            Call::Issue {
                bearer,
                ticket,
                time,
            } => Reply::Ours(self.lock(now, bearer).issue(now, bearer, *ticket, *time)),
            Call::Downgrade(bearer) => {
                let ours = self.lock(now, bearer).downgrade(bearer.token);
                self.dispatch(now, &bearer.terms.key);
                Reply::Ours(ours)
            }
            Call::Leave(bearer) => {
                let lock = self.lock(now, bearer);
                let waiting = lock.queue.len();
                lock.queue.retain(|_, it| it.token != bearer.token);
                let (key, left) = (&bearer.terms.key, lock.queue.len() < waiting);
                Reply::Ours(self.release(now, key, bearer.token, Duration::ZERO, left))
            }
            Call::Disown(grant) => {
                let key = grant.key().expect("it is one of ours");
                Reply::Ours(self.release(now, &key, grant.token, Duration::ZERO, false))
            }
            Call::Step(_) | Call::Report { .. } => Reply::Step(redis::Value::Nil),
        }
    }

    /// Gives a lock to another node, with all that belongs to it.
    pub(super) fn hand_over(&mut self, key: &LockKey, to: &mut Self) {
        if let Some(lock) = self.locks.remove(key) {
            to.locks.insert(key.clone(), lock);
        }
        to.fence = to.fence.max(self.fence);
    }

    fn acquire(
        &mut self,
        now: Moment,
        client: usize,
        bearer: &Bearer,
        position: Option<u64>,
        company: Company,
    ) -> Reply {
        let terms = &bearer.terms;
        let lock = self.lock(now, bearer);
        if lock.extend(now, bearer) {
            let fence = self.fence_of(&terms.key);
            return Reply::Granted { fence };
        }
        if let Some(ticket) = terms.ticket() {
            return self.adopt(now, client, bearer, ticket);
        }
        let mut stands = None;
        if !lock.queue.is_empty() || !lock.admits(terms.kind) {
            let is_full = position.is_none() && terms.is_full(lock.queue.len());
            if !terms.wait.is_try() && !is_full {
                let position = position.unwrap_or_else(|| lock.next_position(now));
                lock.enqueue(now, client, bearer, position, company);
                stands = Some(position);
            }
            self.dispatch(now, &terms.key);
        }
        let lock = self.lock(now, bearer);
        if lock.extend(now, bearer) {
            let fence = self.granted(bearer.token).unwrap_or(self.fence);
            return Reply::Granted { fence };
        }
        let lock = self.lock(now, bearer);
        let ahead = lock.ahead(now);
        match stands {
            Some(_) if lock.holders.is_empty() => Reply::Gone,
            Some(position) => Reply::Waiting { position, ahead },
            None if !lock.queue.is_empty() || !lock.admits(terms.kind) => Reply::Busy { ahead },
            None => {
                lock.hold(now, client, bearer.token, terms.kind, terms.ttl);
                let fence = self.next();
                if let Some(known) = &mut self.known {
                    known.granted(&terms.key, fence, 0);
                }
                Reply::Granted { fence }
            }
        }
    }

    fn adopt(&mut self, now: Moment, client: usize, bearer: &Bearer, ticket: TicketId) -> Reply {
        let terms = &bearer.terms;
        let lock = self.lock(now, bearer);
        let mut holders = lock.holders.iter_mut();
        let is_it = |it: &&mut Holder| it.issued == Some(ticket) && it.kind == terms.kind;
        let Some(holder) = holders.find(is_it) else {
            return Reply::NoTicket;
        };
        holder.token = Some(bearer.token);
        holder.issued = None;
        holder.leads = None;
        holder.client = client;
        holder.until = now.after(terms.ttl);
        let fence = self.next();
        if let Some(known) = &mut self.known {
            known.granted(&terms.key, fence, 0);
        }
        Reply::Granted { fence }
    }

    fn ask(&mut self, now: Moment, client: usize, bearers: &[Bearer]) -> Reply {
        self.lock(now, &bearers[0]).note(now, client);
        self.dispatch(now, &bearers[0].terms.key);
        let mut standings = Vec::new();
        for bearer in bearers {
            let lock = self.lock(now, bearer);
            let waits = |it: &Member| it.token == bearer.token;
            standings.push(if lock.extend(now, bearer) {
                let fence = self.granted(bearer.token);
                Standing::Granted {
                    fence: fence.unwrap_or_else(|| self.fence_of(&bearer.terms.key)),
                }
            } else if lock.queue.values().any(waits) || self.follows(bearer.token) {
                Standing::Waiting
            } else {
                Standing::Gone
            });
        }
        let ahead = self.lock(now, &bearers[0]).ahead(now);
        Reply::Asked { ahead, standings }
    }

    /// `left`: whether the token has left the queue, where others may share the lock now.
    fn release(
        &mut self,
        now: Moment,
        key: &LockKey,
        token: Token,
        cooldown: Duration,
        left: bool,
    ) -> bool {
        let lock = Arc::make_mut(self.locks.entry(key.clone()).or_default());
        lock.sweep(now);
        let found = lock.holders.iter().position(|it| it.token == Some(token));
        if let Some(found) = found {
            if cooldown.is_zero() {
                lock.holders.remove(found);
            } else {
                lock.holders[found].token = None;
                lock.holders[found].until = now.after(cooldown);
            }
        }
        let first = lock.holders.first();
        let shared = first.is_some_and(|it| it.kind != Kind::Exclusive);
        if found.is_some() || left && shared {
            self.dispatch(now, key);
        }
        found.is_some()
    }

    /// Whether the lock is held under this fence now: a follower has it from the one before.
    fn pass(&mut self, now: Moment, bearer: &Bearer, fence: u64) -> bool {
        let ours = self.lock(now, bearer).is_held_by(bearer.token);
        let known = self.known.as_mut();
        ours && known.is_some_and(|it| it.pass(&bearer.terms.key, fence))
    }

    /// Whether it knows of an acquisition as late as that one, if it has to.
    pub(super) fn knows(&self, key: &LockKey, fence: u64) -> bool {
        self.known.as_ref().is_none_or(|it| it.has(key, fence))
    }

    /// The fence of a lock that is held already.
    fn fence_of(&mut self, key: &LockKey) -> u64 {
        match &self.known {
            Some(known) => known.fence(key),
            None => self.next(),
        }
    }

    /// Who holds it exclusively.
    pub(super) fn owner(&mut self, now: Moment, key: &LockKey) -> Option<(usize, Token)> {
        let now = self.shows(now);
        let lock = Arc::make_mut(self.locks.get_mut(key)?);
        lock.sweep(now);
        let first = lock.holders.first()?;
        let token = first.token.filter(|_| first.kind == Kind::Exclusive)?;
        Some((first.client, token))
    }

    /// Whether nobody holds the lock, and nobody waits for it.
    pub(super) fn is_free(&self, now: Moment, key: &LockKey) -> bool {
        let now = self.shows(now);
        self.locks.get(key).is_none_or(|it| {
            it.queue.is_empty() && it.holders.iter().all(|holder| holder.until <= now)
        })
    }

    /// Who holds a lock.
    pub(super) fn holders(&self, now: Moment, key: &LockKey) -> Vec<(usize, Token)> {
        let now = self.shows(now);
        let holders = self.locks.get(key).into_iter().flat_map(|it| &it.holders);
        let held = holders.filter(|it| now < it.until);
        held.filter_map(|it| Some((it.client, it.token?))).collect()
    }

    /// Who holds a lock, as far as holders have told.
    pub(super) fn status(&self, now: Moment, key: &LockKey) -> holder::Status {
        let now = self.shows(now);
        let holders = self.locks.get(key).into_iter().flat_map(|it| &it.holders);
        let held = holders.filter(|it| now < it.until && it.token.is_some());
        let holders = held.map(|it| {
            let (fence, data) = it.leads.clone().unzip();
            holder::Holder {
                fencing_token: fence.map(FencingToken::new),
                data: data.as_deref().map(Into::into),
                ..holder::Holder::unknown("", Some(it.until.since(now)))
            }
        });
        holder::Status {
            holders: holders.collect(),
            ..holder::Status::free(key.clone())
        }
    }

    /// How many wait for a lock.
    pub(super) fn waiting(&self, key: &LockKey) -> usize {
        self.locks.get(key).map_or(0, |it| it.queue.len())
    }

    /// Whether it notes who is asked to yield, and notifies nobody.
    pub(super) fn has_notes(&self) -> bool {
        self.known.is_some()
    }

    /// Under which fence a lock was held last, if it has to know.
    pub(super) fn latest(&self, key: &LockKey) -> u64 {
        self.known.as_ref().map_or(0, |it| it.fence(key))
    }

    /// Whether this token has the lock.
    pub(super) fn is_held_by(&self, now: Moment, key: &LockKey, token: Token) -> bool {
        let now = self.shows(now);
        let mut holders = self.locks.get(key).into_iter().flat_map(|it| &it.holders);
        holders.any(|it| it.token == Some(token) && now < it.until)
    }

    pub(super) fn forget(&mut self, key: &LockKey) {
        self.locks.remove(key);
    }

    /// Revokes a lock, and hands it over; the tokens to notify.
    pub(super) fn force(&mut self, now: Moment, key: &LockKey) -> Vec<Token> {
        let now = self.shows(now);
        let lock = Arc::make_mut(self.locks.entry(key.clone()).or_default());
        lock.sweep(now);
        let holders = std::mem::take(&mut lock.holders);
        self.dispatch(now, key);
        holders.iter().filter_map(|it| it.token).collect()
    }

    /// The number under which this call has granted to one who waited.
    fn granted(&self, token: Token) -> Option<u64> {
        let grants = self.published.iter().map(|(_, grant)| grant);
        let mut own = grants.filter(|it| it.token == token);
        own.next().map(|it| it.fence)
    }

    /// Whether this call has taken it out of the queue behind another one.
    fn follows(&self, token: Token) -> bool {
        let mut grants = self.published.iter().map(|(_, grant)| grant);
        grants.any(|it| it.followers.contains(&token))
    }

    fn dispatch(&mut self, now: Moment, key: &LockKey) {
        let fence = &mut self.fence;
        let Some(lock) = self.locks.get_mut(key).map(Arc::make_mut) else {
            return;
        };
        lock.sweep(now);
        while let Some(head) = lock.queue.first_entry() {
            let member = head.get();
            let seen = lock.seen.get(&member.client);
            let silent = seen.is_none_or(|seen| now.since(*seen) > SILENCE);
            if silent || !self.listeners.contains(&member.client) {
                // A lock that one kind holds skips the dead of every kind.
                if lock.holders.iter().any(|it| it.kind == Kind::Exclusive) {
                    return;
                }
                let member = head.remove();
                // The followers leave the queue before the push shows that nobody listens.
                if !silent && member.kind == Kind::Exclusive && lock.holders.is_empty() {
                    lock.followers(&member);
                }
                continue;
            }
            let (kind, first) = (member.kind, lock.holders.first());
            if first.is_some_and(|it| it.kind != kind || !kind.admits(lock.holders.len())) {
                return;
            }
            let member = head.remove();
            *fence += 1;
            let first = *fence;
            let ttl = member.ttl.min(CLAIM_TTL);
            lock.hold(now, member.client, member.token, kind, ttl);
            let mut followers = Vec::new();
            if kind == Kind::Exclusive {
                followers = lock.followers(&member);
                *fence += followers.len() as u64;
            }
            if let Some(known) = &mut self.known {
                known.granted(key, first, followers.len());
            }
            let grant = Grant {
                token: member.token,
                fence: first,
                owner: format!("lock:{{{key}}}").into(),
                name: member.token.to_string().into(),
                followers: followers.iter().map(|it| it.token).collect(),
            };
            self.published.push((member.client, grant));
        }
    }

    fn lock(&mut self, now: Moment, bearer: &Bearer) -> &mut Lock {
        let lock = Arc::make_mut(self.locks.entry(bearer.terms.key.clone()).or_default());
        lock.sweep(now);
        lock
    }

    fn next(&mut self) -> u64 {
        self.fence += 1;
        self.fence
    }
}

impl Holder {
    /// A renewal of a writer does not find the reader that it has become. One of a reader finds the writer, of whom the
    /// server may know yet.
    fn is_as(&self, bearer: &Bearer) -> bool {
        self.kind == Kind::Exclusive || self.kind == bearer.terms.kind
    }
}

impl Lock {
    fn sweep(&mut self, now: Moment) {
        self.holders.retain(|it| now < it.until);
    }

    fn admits(&self, kind: Kind) -> bool {
        let first = self.holders.first();
        first.is_none_or(|it| it.kind == kind && kind.admits(self.holders.len()))
    }

    fn hold(&mut self, now: Moment, client: usize, token: Token, kind: Kind, ttl: Duration) {
        self.holders.push(Holder {
            token: Some(token),
            issued: None,
            client,
            kind,
            until: now.after(ttl),
            leads: None,
        });
    }

    fn is_held_by(&self, token: Token) -> bool {
        self.holders.iter().any(|it| it.token == Some(token))
    }

    fn extend(&mut self, now: Moment, bearer: &Bearer) -> bool {
        self.ends_after(now, bearer, bearer.terms.ttl)
    }

    /// Its holder goes on as a reader.
    fn downgrade(&mut self, token: Token) -> bool {
        let mut holders = self.holders.iter_mut();
        let holder = holders.find(|it| it.token == Some(token));
        holder.is_some_and(|it| {
            it.kind = Kind::Read;
            true
        })
    }

    fn issue(&mut self, now: Moment, bearer: &Bearer, ticket: TicketId, time: Duration) -> bool {
        let mut holders = self.holders.iter_mut();
        if let Some(holder) = holders.find(|it| it.token == Some(bearer.token)) {
            holder.token = None;
            holder.issued = Some(ticket);
            holder.until = now.after(time);
            return true;
        }
        self.holders.iter().any(|it| it.issued == Some(ticket))
    }

    fn ends_after(&mut self, now: Moment, bearer: &Bearer, left: Duration) -> bool {
        let mut holders = self.holders.iter_mut();
        let holder = holders.find(|it| it.token == Some(bearer.token) && it.is_as(bearer));
        holder.is_some_and(|it| {
            it.until = now.after(left);
            true
        })
    }

    /// A renewal notes the fence of its holder.
    fn note_leader(&mut self, bearer: &Bearer, fence: u64) {
        let mut holders = self.holders.iter_mut();
        if let Some(holder) = holders.find(|it| it.token == Some(bearer.token)) {
            let data = bearer.terms.data.clone();
            holder.leads = data.map(|it| (fence, it));
        }
    }

    fn ahead(&self, now: Moment) -> Ahead {
        let first = self.holders.iter().min_by_key(|it| it.until);
        let name = first.map(|it| it.token.map_or_else(String::new, |it| it.to_string()));
        Ahead {
            owner: name.unwrap_or_default().into(),
            left: first.map(|it| it.until.since(now)),
            // It says nothing that anything is decided by.
            crowd: Crowd::default(),
            before: Some(0),
        }
    }

    fn enqueue(
        &mut self,
        now: Moment,
        client: usize,
        bearer: &Bearer,
        position: u64,
        company: Company,
    ) {
        self.note(now, client);
        if company == Company::More {
            self.crowded.insert(client);
        } else {
            self.crowded.remove(&client);
        }
        let known = self.queue.values().any(|it| it.token == bearer.token);
        if !known {
            let member = Member {
                token: bearer.token,
                client,
                kind: bearer.terms.kind,
                ttl: bearer.terms.ttl,
                company,
            };
            self.queue
                .insert((position, bearer.token.to_string()), member);
        }
    }

    /// A client lives. Those who were seen before the clock went back may be gone. Of one that was silent it is
    /// forgotten that more wait.
    fn note(&mut self, now: Moment, client: usize) {
        let seen = self.seen.insert(client, now);
        if seen.is_none_or(|seen| now.since(seen) > SILENCE) {
            self.crowded.remove(&client);
        }
        for seen in self.seen.values_mut() {
            *seen = now.min(*seen);
        }
    }

    /// The position of one who joins now: behind everybody, also where the clock has gone back.
    fn next_position(&mut self, now: Moment) -> u64 {
        let now = now.as_nanos() / 1000;
        let Some(((last, _), _)) = self.queue.last_key_value() else {
            self.behind = 0;
            return now;
        };
        if *last < now {
            return now;
        }
        if last - now < WINDOW {
            return last + 1;
        }
        if now + self.behind <= *last {
            self.behind = last + WINDOW + 1 - now;
        }
        now + self.behind
    }
}
