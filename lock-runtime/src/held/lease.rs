//! One lease: the lock that it holds, until when, and under which other ones.

mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU128;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use once_cell::race::OnceBox;
use once_cell::sync::OnceCell;
use tokio::sync::oneshot;

use crate::base::clock::{Clock, Moment};
use crate::held::confirmation::Confirmation;
use crate::held::home::Home;
use crate::telemetry::spans::Traced;
use crate::types::answer::Answer;
use crate::types::enclosing::Enclosing;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;
use state::{Purpose, State};

pub(crate) use state::InUse;

/// How long the first lease of a lock that was handed over lasts at most, until it is renewed.
const BRIEF: Duration = Duration::from_secs(3);

/// How much is left of a lock that is delivered, at least.
const BRIEFEST: Duration = Duration::from_millis(20);

/// A lock that was granted, shared between its guard and the driver.
pub(crate) struct Lease {
    /// Identifies it in the driver. The terms of a limit have the number of the lock's
    /// acquisition, which events contain.
    pub(crate) id: LeaseId,
    pub(crate) terms: Arc<Terms>,
    pub(crate) fence: u64,
    /// Identifies the acquisition in the store, if that shows it.
    token: Option<NonZeroU128>,
    pub(crate) granted: Moment,
    pub(crate) clock: Clock,
    /// The latest deadline that a renewal can reach, set by `max_hold` or a fixed lease.
    latest: Moment,
    /// The lease under this one: that of the key taken before, or the re-entered one.
    under: Under,
    /// That of the reader that this writer has become.
    reader: OnceBox<Arc<Lease>>,
    /// Whether a poll of the caller has received it.
    received: AtomicBool,
    released: AtomicBool,
    /// Whether it only limits the lease under it, for a reentrant call.
    limit: bool,
    home: Arc<dyn Home>,
    state: State,
}

#[derive(Default)]
struct Under(OnceCell<Arc<Lease>>);

impl Drop for Under {
    /// Drops one lease after the other: recursive drops of very many keys would overflow the
    /// stack.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut lease) = next.and_then(Arc::into_inner) {
            next = lease.under.0.take();
        }
    }
}

/// The number of the next watcher.
static NEXT_WATCHER: AtomicU64 = AtomicU64::new(0);

impl Lease {
    pub(crate) fn new(
        terms: Arc<Terms>,
        fence: u64,
        granted: Moment,
        deadline: Moment,
        clock: Clock,
        home: Arc<dyn Home>,
    ) -> Self {
        let latest = match terms.longest() {
            Some(most) => granted.after(most),
            None => Moment::from_nanos(u64::MAX),
        };
        let deadline = deadline.min(latest);
        Self {
            id: terms.id,
            terms,
            fence,
            token: None,
            granted,
            clock,
            latest,
            under: Under::default(),
            reader: OnceBox::new(),
            received: AtomicBool::new(false),
            released: AtomicBool::new(false),
            limit: false,
            home,
            state: State::until(deadline.as_nanos()),
        }
    }

    /// The same, known to the store by this token.
    pub(crate) fn known_by(self, token: Option<u128>) -> Self {
        let token = token.and_then(NonZeroU128::new);
        Self { token, ..self }
    }

    /// A lease that ends by `terms`, or with the lease that it re-enters, and holds nothing
    /// itself. The driver ends it.
    pub(crate) fn limit(joined: &Arc<Self>, terms: Arc<Terms>) -> Arc<Self> {
        let (clock, home) = (joined.clock.clone(), Arc::clone(&joined.home));
        let never = Moment::from_nanos(u64::MAX);
        let id = terms.id;
        let terms = Arc::new(Terms {
            id: joined.terms.id,
            ..Arc::unwrap_or_clone(terms)
        });
        let lease = Self {
            id,
            limit: true,
            ..Self::new(terms, joined.fence, clock.now(), never, clock, home)
        };
        lease.put_on(joined);
        Arc::new(lease)
    }

    /// The lease of the same acquisition as a reader, which its caller has. This one ends.
    pub(crate) fn downgraded(&self) -> Arc<Self> {
        let terms = Terms {
            kind: Kind::Read,
            ..Terms::clone(&self.terms)
        };
        let (clock, home) = (self.clock.clone(), Arc::clone(&self.home));
        let (fence, granted, deadline) = (self.fence, self.granted, self.deadline());
        let reader = Self {
            token: self.token,
            ..Self::new(terms.into(), fence, granted, deadline, clock, home)
        };
        reader.arrive();
        if self.state.is_asked() {
            reader.ask();
        }
        self.end();
        Arc::clone(self.reader.get_or_init(|| Box::new(Arc::new(reader))))
    }

    pub(crate) fn is_limit(&self) -> bool {
        self.limit
    }

    pub(crate) fn deadline(&self) -> Moment {
        Moment::from_nanos(self.state.deadline())
    }

    /// Whether the deadline is final.
    pub(crate) fn is_final(&self) -> bool {
        self.deadline() >= self.latest
    }

    /// Joins this lease and another one, such as that of the key taken before, into one.
    pub(crate) fn put_on(&self, under: &Arc<Self>) {
        let known = self.under.0.set(Arc::clone(under));
        debug_assert!(known.is_ok(), "it is put on one lease");
    }

    /// This and the leases under it: those of all keys of one acquisition, or the re-entered ones.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |lease| lease.under.0.get().map(|it| &**it))
    }

    /// Whether all of them are certainly held.
    pub(crate) fn is_held(&self) -> bool {
        self.first_lost().is_none()
    }

    /// The first of them that is not certainly held, or was released: the driver may not have
    /// noticed yet.
    pub(crate) fn first_lost(&self) -> Option<&Self> {
        let now = self.clock.now();
        self.all().find(|it| it.is_over(now))
    }

    fn is_over(&self, now: Moment) -> bool {
        self.released.load(Ordering::SeqCst) || now >= self.deadline()
    }

    /// The held keys, the last taken first.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &LockKey> {
        self.each_lock().map(|lease| &lease.terms.key)
    }

    /// The leases with a lock.
    pub(crate) fn each_lock(&self) -> impl Iterator<Item = &Self> {
        self.all().filter(|lease| !lease.is_limit())
    }

    /// Its locks as what is asked for under it names them, the last taken first.
    pub(crate) fn enclosing(&self) -> impl Iterator<Item = Enclosing> {
        self.each_lock().filter_map(|lease| {
            let fence = lease.fence;
            let token = lease.token?.get();
            Some(Enclosing { token, fence })
        })
    }

    /// A span for work under it.
    pub(crate) fn traced(&self) -> Traced {
        Traced::hold(&self.terms, self.keys(), self.fence)
    }

    pub(crate) fn locks(&self, key: &LockKey) -> bool {
        self.all().any(|lease| lease.terms.key == *key)
    }

    /// How long ago it was granted.
    pub(crate) fn age(&self) -> Duration {
        self.clock.now().since(self.granted)
    }

    /// How long all of them are certainly held.
    pub(crate) fn remaining(&self) -> Duration {
        let now = self.clock.now();
        let left = self.all().map(|lease| {
            if lease.is_over(now) {
                Duration::ZERO
            } else {
                lease.deadline().since(now)
            }
        });
        left.min().unwrap_or_default()
    }

    /// The one name of a lock that may have several in the store of this lease.
    pub(crate) fn name(&self, key: LockKey) -> Option<LockKey> {
        self.home.name(key).ok()
    }

    pub(crate) fn belongs_to(&self, home: &dyn Home) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.home), home)
    }

    /// Extends the deadline. Only the driver calls it, before the old deadline has passed: a
    /// lapsed lease stays lapsed.
    pub(crate) fn extend(&self, deadline: Moment) {
        let deadline = deadline.min(self.latest);
        self.state.extend(deadline.as_nanos());
    }

    /// The lock is no longer held: no poll of the body starts from here on.
    pub(crate) fn end(&self) {
        self.state.end();
    }

    /// Somebody would like to have the lock; whether that is news.
    pub(crate) fn ask(&self) -> bool {
        self.state.ask()
    }

    /// Whether somebody would like to have one of the locks.
    pub(super) fn is_asked(&self) -> bool {
        self.all().any(|lease| lease.state.is_asked())
    }

    /// A body under it has been stopped, since one of the leases has ended.
    pub(crate) fn stopped(&self) {
        let now = self.clock.now();
        for lease in self.all().filter(|it| it.is_over(now)) {
            lease.state.stopped();
        }
    }

    /// Whether a body under it was stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        self.state.has_stopped()
    }

    /// For [`acts_under`](crate::held::current::acts_under).
    pub(super) fn unstopped(&self) {
        for lease in self.all() {
            lease.state.unstopped();
        }
    }

    /// The code that may still run, once the lease has [ended](Self::end).
    pub(crate) fn in_use(&self) -> InUse {
        self.state.in_use()
    }

    /// For [`Running`](crate::held::running::Running), as the next one.
    pub(super) fn poll_begins(&self) {
        self.state.poll_begins();
    }

    pub(super) fn poll_returns(&self) {
        if self.state.poll_returns() {
            self.home.poll_returned(self.id);
        }
    }

    /// Notes that a poll of the caller has received it, alone or as one of several.
    pub(crate) fn receive(&self) {
        self.received.store(true, Ordering::SeqCst);
    }

    /// A lock whose caller is not polled is not renewed.
    pub(crate) fn is_received(&self) -> bool {
        self.received.load(Ordering::SeqCst)
    }

    /// Notes that the caller has its guard.
    pub(crate) fn arrive(&self) {
        self.receive();
        self.state.arrive();
    }

    /// Whether it has not been renewed since its caller was not polled, and would end before the answer to a renewal.
    pub(crate) fn is_late(&self) -> bool {
        let terms = &self.terms;
        // A brief ttl leaves time for a look of the watchdog and for the renewal.
        let least = (terms.ttl.min(BRIEF) / 20).max(BRIEFEST).min(terms.ttl / 4);
        let left = self.deadline().since(self.clock.now());
        terms.renew && terms.adopts.is_none() && !self.is_final() && left < least
    }

    /// A lock that was never delivered to its caller skips the cooldown.
    pub(crate) fn has_arrived(&self) -> bool {
        self.state.has_arrived()
    }

    /// Hands the release to the driver, once.
    pub(crate) fn release(&self) {
        self.hand_over(None);
    }

    /// The same, in a destructor.
    pub(crate) fn drop_release(&self) {
        if self.is_first_release() {
            self.home.release_from_destructor(self.id);
        }
    }

    /// The same, with the answer, and whether a task of this process has received the lock
    /// meanwhile.
    pub(crate) fn release_confirmed(&self) -> (Confirmation, bool) {
        let (answer, answered) = oneshot::channel();
        let handed_over = self.hand_over(Some(answer));
        (Confirmation::new(answered, &self.home), handed_over)
    }

    /// Lets a ticket take its place, once.
    pub(super) fn issue(
        &self,
        ticket: TicketId,
        time: Duration,
    ) -> Result<Confirmation, LockError> {
        let (answer, answered) = oneshot::channel();
        self.home.check_tickets()?;
        if self.is_first_release() {
            self.home.issue(self.id, ticket, time, answer);
        }
        Ok(Confirmation::new(answered, &self.home))
    }

    /// Lets the driver know that it goes on as a reader.
    pub(super) fn downgrade(&self) -> Result<Confirmation, LockError> {
        self.home.check_downgrade()?;
        let (answer, answered) = oneshot::channel();
        self.home.downgrade(self.id, answer);
        Ok(Confirmation::new(answered, &self.home))
    }

    /// The lease of the reader, which is released instead of this one.
    pub(super) fn give_way(&self) -> Option<Arc<Self>> {
        let reader = self.reader.get().cloned();
        if reader.is_some() {
            self.released.store(true, Ordering::SeqCst);
        }
        reader
    }

    pub(super) fn home(&self) -> &dyn Home {
        &*self.home
    }

    fn hand_over(&self, answer: Option<Answer<bool>>) -> bool {
        self.is_first_release() && self.home.release(self.id, &self.terms.key, answer)
    }

    fn is_first_release(&self) -> bool {
        !self.released.swap(true, Ordering::SeqCst)
    }

    /// Wakes `waker` when one of the leases ends. `slot` is kept between polls, so that a new
    /// waker replaces the old one.
    pub(crate) fn watch(&self, slot: &mut Option<u64>, waker: &Waker) {
        self.wake_then(slot, waker, Purpose::Loss);
    }

    /// The same for a body, which is dropped then.
    pub(crate) fn watch_for_body(&self, slot: &mut Option<u64>, waker: &Waker) {
        self.wake_then(slot, waker, Purpose::Body);
    }

    /// The same, and when somebody would like to have the lock.
    pub(super) fn watch_for_asks(&self, slot: &mut Option<u64>, waker: &Waker) {
        self.wake_then(slot, waker, Purpose::Asked);
    }

    fn wake_then(&self, slot: &mut Option<u64>, waker: &Waker, purpose: Purpose) {
        let slot = *slot.get_or_insert_with(|| NEXT_WATCHER.fetch_add(1, Ordering::Relaxed));
        for lease in self.all() {
            lease.state.watch(slot, waker, purpose);
        }
    }

    pub(crate) fn unwatch(&self, slot: Option<u64>) {
        if let Some(slot) = slot {
            for lease in self.all() {
                lease.state.unwatch(slot);
            }
        }
    }

    /// For users, who see it through the types that contain it.
    pub(super) fn describe(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        f.debug_struct(name)
            .field("key", &self.terms.key)
            .field("fencing_token", &self.fence)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f, "Lease")
    }
}
