//! An election: a lock whose holder leads, and publishes data for those who observe it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::api::leaders::Leaders;
use crate::api::leadership::Leadership;
use crate::api::request::LockRequest;
use crate::api::shared::Shared;
use crate::driver::Op;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::keys::Keys;

/// How many bytes a candidate publishes at most.
const MAX_DATA: usize = 1024;

/// An election, from [`LockManager::election`](crate::LockManager::election): its candidates wait for
/// the lock of its name, and the holder leads.
///
/// The store needs [fencing tokens](crate::Capabilities::fencing).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let election = locks.election("reports");
/// let leadership = election.candidate("10.0.0.7:80").campaign().await?;
/// println!("leads with the fencing token {}", leadership.fencing_token());
/// # Ok(()) }
/// ```
#[must_use = "it has neither a candidate nor an observer yet"]
pub struct Election {
    shared: Arc<Shared>,
    name: Result<LockKey, LockError>,
}

impl Election {
    pub(crate) fn new(shared: Arc<Shared>, name: Result<LockKey, LockError>) -> Self {
        Self { shared, name }
    }

    /// A candidate that publishes `data` when it leads: its address, for instance. At most 1024
    /// bytes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let candidate = locks.election("reports").candidate("10.0.0.7:80");
    /// candidate.run(async |_| println!("the reports are written")).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn candidate(self, data: impl Into<Arc<str>>) -> Candidate {
        let data = data.into();
        let name = self.name.and_then(|name| {
            if data.len() > MAX_DATA {
                let reason = format_args!("it must have at most {MAX_DATA} bytes");
                return Err(LockError::invalid("data", reason));
            }
            Ok(name)
        });
        let request = LockRequest::new(self.shared, Keys::new([name]));
        Candidate {
            request: request.electing(data),
        }
    }

    /// The leaders: the present one, and each that follows and lasts longer than a second, in the
    /// order of their fencing tokens and none twice. The manager looks twice a second, with one
    /// query for all observers of the election. While the server cannot be reached, no leader is
    /// shown.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if the name is invalid, [`LockError::InvalidOptions`] if the store
    /// has no fencing tokens.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let mut leaders = locks.election("reports").observe()?;
    /// let _leadership = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
    /// let leader = leaders.next().await.expect("the manager lives");
    /// assert_eq!(&*leader.data, "10.0.0.7:80");
    /// # Ok(()) }
    /// ```
    pub fn observe(self) -> Result<Leaders, LockError> {
        let (name, can) = (self.name?, self.shared.capabilities);
        if !can.fencing {
            return Err(can.lacks("election"));
        }
        let (observer, leaders) = mpsc::unbounded_channel();
        // A manager that was shut down drops the observer, which ends the stream.
        let _ = self.shared.mailbox.send(Op::Observe(name, observer));
        Ok(Leaders::new(leaders))
    }
}

/// A candidate of an [`Election`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let candidate = locks.election("reports").candidate("10.0.0.7:80");
/// candidate.run(async |leadership| println!("{}", leadership.fencing_token())).await?;
/// # Ok(()) }
/// ```
#[must_use = "it does not stand for election before `campaign` or `run`"]
pub struct Candidate {
    request: LockRequest,
}

impl Candidate {
    /// The lease: how long it takes until the next candidate leads after a leader has crashed. The
    /// default is that of the [configuration](crate::LockConfig::ttl).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let candidate = locks.election("reports").candidate("10.0.0.7:80").ttl(Duration::from_secs(5));
    /// let leadership = candidate.campaign().await?;
    /// # Ok(()) }
    /// ```
    pub fn ttl(self, ttl: Duration) -> Self {
        Self {
            request: self.request.ttl(ttl),
        }
    }

    /// Waits in the queue of the lock until the candidate leads. Dropping the future withdraws the
    /// candidate.
    ///
    /// # Errors
    ///
    /// Those of [`LockRequest::acquire`](crate::LockRequest::acquire) with
    /// [`wait_forever`](crate::LockRequest::wait_forever). [`LockError::InvalidOptions`] also if the
    /// data is too long, or the store has no fencing tokens.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let first = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
    /// let second = locks.election("reports").candidate("10.0.0.8:80").campaign();
    /// first.resign();
    /// let second = second.await?;
    /// # Ok(()) }
    /// ```
    pub async fn campaign(self) -> Result<Leadership, LockError> {
        self.request.acquire().await.map(Leadership::new)
    }

    /// Campaigns, runs `body` while the candidate leads, and resigns.
    ///
    /// # Errors
    ///
    /// Those of [`campaign`](Self::campaign), and [`LockError::Lost`] if the leadership was lost while
    /// the body ran, which has been dropped then.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let candidate = locks.election("reports").candidate("10.0.0.7:80");
    /// let fence = candidate.run(async |leadership| leadership.fencing_token()).await?;
    /// # Ok(()) }
    /// ```
    pub async fn run<T>(self, body: impl AsyncFnOnce(&Leadership) -> T) -> Result<T, LockError> {
        let leadership = self.campaign().await?;
        let leads = &leadership;
        let output = leadership.run(async move { body(leads).await }).await?;
        leadership.resign();
        Ok(output)
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Election").field(&self.name).finish()
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Candidate").field(&self.request).finish()
    }
}
