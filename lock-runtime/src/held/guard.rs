//! The guard of a lock, by which its holder keeps and releases it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::base::give_way::give_way;
use crate::held::asked::Asked;
use crate::held::current;
use crate::held::downgrading::downgrade;
use crate::held::hold::{Hold, HoldUnstopped};
use crate::held::issuing::issue;
use crate::held::lease::Lease;
use crate::types::error::LockError;
use crate::types::fence::FencingToken;
use crate::types::into_key::IntoKey;
use crate::types::key::LockKey;
use crate::types::ticket::Ticket;

/// A lock that is held, and renewed in the background, until this is dropped or
/// released.
///
/// May be dropped anywhere: on another thread, outside every runtime, while
/// unwinding. The release then happens in the background.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let guard = locks.lock("stock:lamp").acquire().await?;
/// let sold = guard.hold(async { 1 }).await?;
/// assert!(guard.is_held() && sold == 1);
/// drop(guard);
/// # Ok(()) }
/// ```
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct LockGuard {
    lease: Arc<Lease>,
    /// How many leases this guard releases, from the top one down.
    owned: usize,
}

impl LockGuard {
    pub(crate) fn new(lease: Arc<Lease>) -> Self {
        let owned = usize::MAX;
        Self { lease, owned }
    }

    /// Another guard for a lease that another guard releases.
    pub(crate) fn joined(lease: Arc<Lease>) -> Self {
        let owned = 0;
        Self { lease, owned }
    }

    /// The same with a limit on top of that lease; this guard releases the limit.
    pub(crate) fn limited(limit: Arc<Lease>) -> Self {
        let owned = 1;
        Self {
            lease: limit,
            owned,
        }
    }

    pub(crate) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// The leases that this guard releases.
    fn owned(&self) -> impl Iterator<Item = &Lease> {
        self.lease.all().take(self.owned)
    }

    /// The guard for its caller, or the same as an error if one of its locks has ended, or is about to end since its caller
    /// was not polled for so long.
    pub(crate) fn deliver(self) -> Result<Self, Self> {
        // What has not arrived is released without a cooldown.
        if !self.lease.is_held() || self.lease.all().any(Lease::is_late) {
            return Err(self);
        }
        self.lease.all().for_each(Lease::arrive);
        // Until then, the driver gives a lock that ends away at once.
        if self.lease.is_held() {
            Ok(self)
        } else {
            Err(self)
        }
    }

    /// One guard for the leases of both; `under` was taken before.
    pub(crate) fn on_top_of(self, under: Option<Self>) -> Self {
        if let Some(mut under) = under {
            under.owned = 0;
            self.lease.put_on(&under.lease);
        }
        self
    }

    /// The lock's name, or the last in order of several names.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("stock:lamp").acquire().await?;
    /// assert_eq!(guard.key(), "stock:lamp");
    /// # Ok(()) }
    /// ```
    pub fn key(&self) -> &LockKey {
        // A limit has the first one.
        self.keys().next().unwrap_or(&self.lease.terms.key)
    }

    /// The names of everything that is held, the last one in order first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let both = locks.lock_all(["account:3", "account:7"]).acquire().await?;
    /// let names: Vec<_> = both.keys().map(|key| key.as_str()).collect();
    /// assert_eq!(names, ["account:7", "account:3"]);
    /// # Ok(()) }
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = &LockKey> {
        self.lease.keys()
    }

    /// The fencing token of this acquisition: larger than those of all earlier exclusive holders of
    /// its key. With several keys it is the token of the last key, and larger than earlier tokens
    /// of all of them. On Redis Cluster, on Redlock and with `?layout=declared` in the URL, tokens
    /// of different keys are not comparable: there, use
    /// [`fencing_token_of`](Self::fencing_token_of) for each key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let first = locks.lock("stock:lamp").acquire().await?.fencing_token();
    /// let second = locks.lock("stock:lamp").acquire().await?.fencing_token();
    /// assert!(first < second); // a database that has seen the second rejects the first
    /// # Ok(()) }
    /// ```
    pub fn fencing_token(&self) -> FencingToken {
        FencingToken::new(self.lease.fence)
    }

    /// The fencing token of one of the guard's keys: larger than those of all earlier exclusive
    /// holders of that key. `None` if the guard does not hold the key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let both = locks.lock_all(["account:3", "account:7"]).acquire().await?;
    /// let of_three = both.fencing_token_of("account:3");
    /// assert!(of_three.is_some() && both.fencing_token_of("account:9").is_none());
    /// # Ok(()) }
    /// ```
    pub fn fencing_token_of(&self, key: impl IntoKey) -> Option<FencingToken> {
        let key = self.lease.name(key.into_key().ok()?)?;
        let mut locks = self.lease.each_lock();
        let lease = locks.find(|lease| lease.terms.key == key)?;
        Some(FencingToken::new(lease.fence))
    }

    /// How long the lock is surely held if no further renewal succeeds.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("stock:lamp").acquire().await?;
    /// if guard.remaining() < Duration::from_secs(2) {
    ///     println!("too late for another parcel");
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// Whether the lock is certain to be held at this moment. After `true`, nobody else gets it for the
    /// *margin*: 2 % of the ttl, at least 50 ms and at most a quarter of the ttl. For a guard that
    /// has joined, it is false once the guard that took the lock has released it, or a limit of its
    /// own has passed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("stock:lamp").acquire().await?;
    /// if guard.is_held() {
    ///     println!("send the parcel");
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_held(&self) -> bool {
        current::acts_under(&self.lease);
        self.lease.is_held()
    }

    /// Resolves when the lock is no longer surely held.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("leader").ttl(Duration::from_millis(100)).renew(false).acquire().await?;
    /// guard.lost().await;
    /// assert!(!guard.is_held());
    /// # Ok(()) }
    /// ```
    pub fn lost(&self) -> Lost<'_> {
        Lost {
            lease: &self.lease,
            slot: None,
        }
    }

    /// Resolves when somebody would like to have the lock and has [asked](crate::LockManager::ask) for
    /// it, or when the lock is no longer surely held. The holder decides when it releases the lock,
    /// and whether it does: nothing stops its work.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("leader").acquire().await?;
    /// assert_eq!(locks.ask("leader").await?, 1); // by a process that is about to replace this one
    /// guard.asked().await;
    /// guard.release(); // at a safe point
    /// # Ok(()) }
    /// ```
    pub fn asked(&self) -> Asked<'_> {
        Asked::of(&self.lease)
    }

    /// Whether somebody has asked for the lock, for synchronous code.
    ///
    /// ```
    /// use lock_runtime::LockManager;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let locks = LockManager::connect_blocking("memory:")?;
    /// let guard = locks.lock("indexer").acquire_blocking()?;
    /// for page in 0..3 {
    ///     println!("indexes page {page}");
    ///     if guard.is_asked() {
    ///         break; // makes way for the process that replaces this one
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.lease.is_asked()
    }

    /// Runs `body` for as long as the lock is surely held. If the deadline passes while a poll of
    /// the body runs, the lock is kept until that poll has returned and the body is dropped, or
    /// until the lease ends at the server, whichever comes first.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lease ended first; the body has then been dropped at
    /// one of its await points.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("stock:lamp").acquire().await?;
    /// let left = guard.hold(async { 49 }).await?;
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn hold<F: Future>(&self, body: F) -> Hold<'_, F> {
        Hold::new(&self.lease, body)
    }

    /// Runs `body` to its end whatever becomes of the lock. The body can ask its guard, or
    /// [`current`](crate::current()), whether the lock is still held. After the deadline, the lock
    /// is kept for the [margin](Self::is_held); then the body may overlap with the next holder.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("stock:lamp").acquire().await?;
    /// let is_held = guard.hold_unstopped(async { guard.is_held() }).await;
    /// println!("done, and the lock was held: {is_held}");
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn hold_unstopped<F: Future>(&self, body: F) -> HoldUnstopped<'_, F> {
        HoldUnstopped::new(&self.lease, body)
    }

    /// Hands the release to the driver and returns at once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("stock:lamp").acquire().await?;
    /// guard.release(); // as `drop(guard)`, by name
    /// locks.lock("stock:lamp").acquire().await?;
    /// # Ok(()) }
    /// ```
    pub fn release(self) {
        self.owned().for_each(Lease::release);
    }

    /// Releases and waits for the server's answer: `true` if the lock was still held; `false` if
    /// not, or if the request had to be repeated and the repetition found the lock released.
    /// Dropping the future does not take the release back. A guard that has joined releases
    /// nothing, and says whether the lock is held. Where the lock passes to another task of this
    /// process without the server, that task is woken before this future is ready.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if the server did not answer before the lease ended
    /// by itself, and at once if the server refuses, because a right is missing for
    /// instance. The release is still sent again until the lease would have ended;
    /// [`shutdown`](crate::LockManager::shutdown) does not wait for that.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("stock:lamp").acquire().await?;
    /// assert!(guard.release_confirmed().await?);
    /// assert!(!locks.status("stock:lamp").await?.is_held());
    /// # Ok(()) }
    /// ```
    pub fn release_confirmed(self) -> impl Future<Output = Result<bool, LockError>> + Send {
        let held = self.lease.is_held();
        let (answers, handed_over): (Vec<_>, Vec<_>) = if self.owned < usize::MAX {
            Default::default()
        } else {
            self.owned().map(Lease::release_confirmed).unzip()
        };
        let handed_over = handed_over.contains(&true);
        drop(self);
        async move {
            let mut held = held || !answers.is_empty();
            if handed_over {
                // Before the caller asks for the lock again.
                give_way().await;
            }
            for answer in answers {
                held &= answer.await?;
            }
            Ok(held)
        }
    }

    /// Turns a writer into a reader, and admits the readers at the head of the queue. Nobody else has the
    /// lock in between, so the reader finds what the writer has left. The fencing token stays
    /// the same, and so do the lease, [`max_hold`](crate::LockRequest::max_hold) and
    /// [`min_hold`](crate::LockRequest::min_hold), which count from the grant.
    ///
    /// The writer's guard ends at once: no body runs under it any more, nor under those that have joined
    /// it. There is no way back: two readers who both want to write would wait for each
    /// other for ever, so release the lock and take it again.
    ///
    /// If an answer is lost, the store is asked again until the lease ends. If the future is
    /// dropped or fails, the lock is released, unless the guard has joined another one.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lease ended before the store has answered.
    /// [`LockError::Unavailable`] if the store refuses. [`LockError::InvalidOptions`] if the guard is
    /// not that of one exclusive lock, it has joined another one, a body runs under the lock at this
    /// moment, or the store does not support it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let writer = locks.lock("catalogue").write().acquire().await?;
    /// // … write the catalogue, and go on reading it:
    /// let reader = writer.downgrade().await?;
    /// let other = locks.lock("catalogue").read().try_once().acquire().await?;
    /// assert!(reader.is_held() && other.is_held());
    /// # Ok(()) }
    /// ```
    pub async fn downgrade(self) -> Result<Self, LockError> {
        self.stands_alone(
            "downgrade",
            "downgrade that one",
            "take each with a guard of its own",
        )?;
        downgrade(&self.lease).await.map(Self::new)
    }

    /// Replaces this guard by a ticket: the lock stays closed, without renewals, until somebody
    /// [adopts](crate::LockManager::adopt) the ticket, in this process or another one. Waiters keep
    /// their positions. If nobody adopts it within `time`, 100 ms to 24 h, the lock goes to the
    /// next waiter.
    ///
    /// The lease of this guard ends at once, and no body runs under it any more. A
    /// [`min_hold`](crate::LockRequest::min_hold) ends with it: whoever adopts the lock sets its
    /// own.
    ///
    /// If the future is dropped, or fails after the server may have written the ticket, the lock is
    /// released as soon as the server can be asked, and in any case when `time` has passed.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lock was not held any more. [`LockError::Unavailable`] if the
    /// server did not answer before the lease ended. [`LockError::InvalidOptions`] if the store has
    /// no tickets, the guard holds several keys or permits, or has joined another guard, a body is
    /// being polled, or `time` is out of range: then the lock is released, unless the guard has
    /// joined.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("video:7").acquire().await?;
    /// let ticket = guard.into_ticket(Duration::from_secs(60)).await?;
    /// assert!(locks.lock("video:7").try_once().acquire().await.is_err());
    /// let guard = locks.adopt(&ticket).await?;
    /// guard.release();
    /// assert!(locks.adopt(&ticket).await.is_err(), "once");
    /// # Ok(()) }
    /// ```
    pub async fn into_ticket(self, time: Duration) -> Result<Ticket, LockError> {
        self.stands_alone(
            "ticket",
            "make the ticket from that one",
            "make a ticket for each, from a guard of one key",
        )?;
        if self.lease.terms.take > 1 {
            let why = "the guard has several permits, and a ticket is for one";
            return Err(LockError::invalid("ticket", why));
        }
        issue(&self.lease, time).await
    }

    /// Refuses unless this guard alone has one lock; with what to do instead if it has joined, and if
    /// it has several.
    fn stands_alone(
        &self,
        setting: &'static str,
        joined: &str,
        several: &str,
    ) -> Result<(), LockError> {
        if self.owned < usize::MAX {
            let why =
                format_args!("the guard has joined a lock that another guard holds: {joined}");
            return Err(LockError::invalid(setting, why));
        }
        if self.lease.all().nth(1).is_some() {
            let why = format_args!("the guard holds several keys: {several}");
            return Err(LockError::invalid(setting, why));
        }
        Ok(())
    }
}

/// A guard of the lock under which the current code runs, the innermost of several:
/// with it, a function deep below a locked one can send the fencing token along.
///
/// It is another guard for the same lease: dropping or releasing it releases nothing. `None`
/// outside [`hold`](LockGuard::hold), [`hold_unstopped`](LockGuard::hold_unstopped), annotated
/// functions and [`run`](crate::LockRequest::run), and in spawned tasks, unless the body itself
/// polls them, as with a local executor inside it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// use lock_runtime::FencingToken;
///
/// fn fence() -> Option<FencingToken> {
///     lock_runtime::current().map(|guard| guard.fencing_token())
/// }
///
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let request = locks.lock("stock:lamp");
/// assert!(request.run(async |_| fence()).await?.is_some() && fence().is_none());
/// # Ok(()) }
/// ```
#[must_use]
pub fn current() -> Option<LockGuard> {
    current::innermost().map(LockGuard::joined)
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.owned().for_each(Lease::drop_release);
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lease.describe(f, "LockGuard")
    }
}

/// The future of [`LockGuard::lost`].
#[must_use = "futures do nothing unless polled"]
pub struct Lost<'g> {
    lease: &'g Lease,
    slot: Option<u64>,
}

impl Future for Lost<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.lease.watch(&mut this.slot, cx.waker());
        // Checked after the waker is known, so that an end in between wakes it.
        if this.lease.is_held() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

impl fmt::Debug for Lost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lease.describe(f, "Lost")
    }
}

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        self.lease.unwatch(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;
    use std::task::Waker;

    use super::*;
    use crate::base::clock::Clock;
    use crate::held::home::Nowhere;
    use crate::held::lease::InUse;
    use crate::types::deadline::deadline;
    use crate::types::terms::{LeaseId, Terms};

    /// One that its caller has not received, granted for 10 s.
    fn granted(clock: &Clock) -> LockGuard {
        let (now, ttl) = (clock.now(), Duration::from_secs(10));
        let terms = Terms::of(LeaseId(1), "k", ttl).into();
        let ends = deadline(now, ttl);
        let lease = Lease::new(terms, 1, now, ends, clock.clone(), Arc::new(Nowhere));
        LockGuard::new(Arc::new(lease))
    }

    fn guard() -> LockGuard {
        let delivered = granted(&Clock::manual()).deliver();
        delivered.expect("it was granted just now")
    }

    // Section: guarantees.md#the-body-does-not-begin-without-the-lock
    #[test]
    fn a_lock_that_is_about_to_end_is_not_delivered() {
        for (waited, is_delivered) in [(9_000, true), (9_600, false)] {
            let clock = Clock::manual();
            let guard = granted(&clock);
            clock.advance(Duration::from_millis(waited));
            assert!(guard.lease.is_held());
            let delivered = guard.deliver();
            assert_eq!(delivered.is_ok(), is_delivered, "after {waited} ms");
        }
    }

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn who_has_found_the_lock_held_beside_a_body_has_the_margin() {
        for looks in [false, true] {
            let guard = guard();
            let mut body = pin!(guard.hold(pending::<()>()));
            assert!(poll(body.as_mut()).is_pending());
            assert!(!looks || guard.is_held());
            guard.lease.end();
            let expected = if looks { InUse::ByGuard } else { InUse::No };
            assert_eq!(guard.lease.in_use(), expected);
        }
    }

    #[test]
    fn a_guard_has_the_margin_after_a_body_that_has_finished() {
        let guard = guard();
        let mut body = pin!(guard.hold(give_way()));
        assert!(poll(body.as_mut()).is_pending());
        assert!(poll(body.as_mut()).is_ready());
        guard.lease.end();
        assert_eq!(guard.lease.in_use(), InUse::ByGuard);
    }

    #[test]
    fn a_guard_has_the_margin_after_a_body_that_finishes_as_its_lease_ends() {
        let guard = guard();
        let mut body = pin!(guard.hold(async {
            give_way().await;
            guard.lease.end();
        }));
        assert!(poll(body.as_mut()).is_pending());
        assert!(poll(body.as_mut()).is_ready());
        assert_eq!(guard.lease.in_use(), InUse::ByGuard);
    }

    #[test]
    fn a_body_that_looks_is_stopped_and_has_no_margin() {
        let guard = guard();
        let mut body = pin!(guard.hold(async {
            assert!(guard.is_held());
            assert!(current().is_some_and(|joined| joined.is_held()));
            pending::<()>().await;
        }));
        assert!(poll(body.as_mut()).is_pending());
        guard.lease.end();
        assert_eq!(guard.lease.in_use(), InUse::No);
    }

    #[test]
    fn a_body_within_one_that_is_stopped_has_no_margin() {
        let guard = guard();
        let mut body = pin!(guard.hold(async {
            let joined = current().expect("it runs under the lock");
            joined.hold_unstopped(pending::<()>()).await;
        }));
        assert!(poll(body.as_mut()).is_pending());
        guard.lease.end();
        assert_eq!(guard.lease.in_use(), InUse::No);
    }

    // Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
    #[test]
    fn a_body_that_is_not_stopped_has_the_margin_also_around_one_that_is() {
        let guard = guard();
        let mut body = pin!(guard.hold_unstopped(async {
            let joined = current().expect("it runs under the lock");
            joined.hold(pending::<()>()).await
        }));
        assert!(poll(body.as_mut()).is_pending());
        guard.lease.end();
        assert_eq!(guard.lease.in_use(), InUse::ByGuard);
        let ended = poll(body.as_mut());
        assert!(matches!(ended, Poll::Ready(Err(LockError::Lost { .. }))));
        assert_eq!(guard.lease.in_use(), InUse::ByGuard);
    }
}
