//! All sentinels of a service: they are asked together, and what each has said last is
//! kept.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::RedisError;
use tokio::task::JoinSet;
use tokio::time::timeout_at;

use super::question::{Master, Sentinel};
use super::service::Service;
use super::words::Words;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::opening::distrust;
use crate::backend::redis::protocol::trouble::is_for_good;
use crate::backend::setup::Setup;
use crate::backend::transport::backoff::first_attempt;
use crate::backend::transport::endpoint::{Endpoint, Route};

/// How long the others have, once one sentinel has named a master: the first may be the
/// one that has not heard of the latest failover.
const LINGER: Duration = Duration::from_millis(100);

/// The sentinels of one service.
pub(crate) struct Sentinels {
    pub(super) service: String,
    pub(super) all: Vec<Sentinel>,
    /// How long one may take to answer, where nobody says how much time there is.
    pub(super) timeout: Duration,
    words: Mutex<Words>,
}

impl Sentinels {
    pub(crate) fn new(service: &Service, setup: &Setup) -> Self {
        let sentinel = |host| Sentinel {
            route: Route::tcp(host, service.encrypted, setup),
            login: service.sentinel_login.to(0),
        };
        Self {
            service: service.name.clone(),
            all: service.sentinels.iter().map(sentinel).collect(),
            words: Mutex::new(Words::new(Instant::now(), service.sentinels.len())),
            // The other half is for the master.
            timeout: first_attempt(setup.connect_timeout) / 2,
        }
    }

    /// Takes note of the answer of one of them.
    pub(super) fn said(&self, number: usize, master: Option<Master>) {
        self.words().said(Instant::now(), number, master);
    }

    /// The master, as far as they have said.
    pub(crate) fn master(&self) -> Option<Master> {
        self.words().master(Instant::now()).cloned()
    }

    fn words(&self) -> MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the current master within this time; also says the way to it.
    pub(crate) async fn find(self: &Arc<Self>, time: Duration) -> Result<(Master, Route), Trouble> {
        self.ask_all(time).await?;
        let silent = || Trouble::not_now("no sentinel names a master any more");
        // One that was slow this time may have known better before.
        let master = self.master().ok_or_else(silent)?;
        let route = self.all[0].route.to(master.host.clone());
        Ok((master, route))
    }

    /// Fails if none of them names a master.
    async fn ask_all(self: &Arc<Self>, time: Duration) -> Result<(), Trouble> {
        let mut asked = JoinSet::new();
        for number in 0..self.all.len() {
            let this = Arc::clone(self);
            asked.spawn(async move { (number, this.all[number].ask(&this.service).await) });
        }
        let mut refusals: Vec<_> = self.all.iter().map(|_| Refusal::Silent).collect();
        let mut is_named = false;
        let mut answer_by = Instant::now() + time;
        while let Ok(Some(answered)) = timeout_at(answer_by.into(), asked.join_next()).await {
            let Ok((number, answer)) = answered else {
                continue;
            };
            match answer {
                Ok(Some(master)) => {
                    answer_by = answer_by.min(Instant::now() + LINGER);
                    self.said(number, Some(master));
                    is_named = true;
                }
                Ok(None) => {
                    self.said(number, None);
                    refusals[number] = Refusal::Unknown;
                }
                Err(error) => refusals[number] = Refusal::of(&error),
            }
        }
        if is_named {
            return Ok(());
        }
        Err(self.no_master(refusals))
    }

    fn no_master(&self, refusals: Vec<Refusal>) -> Trouble {
        let for_good = |it: &Refusal| matches!(it, Refusal::Unknown | Refusal::Forbidden(_));
        let for_good = refusals.iter().all(for_good);
        let endpoints = self.all.iter().map(|it| it.route.endpoint.clone());
        let cause = Arc::new(NoMaster {
            service: self.service.clone(),
            refusals: endpoints.zip(refusals).collect(),
        });
        if for_good {
            Trouble::Never(cause)
        } else {
            Trouble::NotNow(cause)
        }
    }
}

/// Why one sentinel has named no master.
#[derive(Debug)]
enum Refusal {
    Unknown,
    Silent,
    Forbidden(String),
    Failed(String),
}

impl Refusal {
    fn of(error: &RedisError) -> Self {
        if let Some(distrust) = distrust(error) {
            return Self::Forbidden(distrust.to_string());
        }
        if is_for_good(error) {
            Self::Forbidden(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("knows no such service"),
            Self::Silent => f.write_str("did not answer in time"),
            Self::Forbidden(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

/// No sentinel has named a master, and what each said instead.
#[derive(Debug)]
pub(crate) struct NoMaster {
    service: String,
    refusals: Vec<(Endpoint, Refusal)>,
}

impl NoMaster {
    /// Whether all sentinels know no service of this name.
    pub(crate) fn is_unknown(&self) -> bool {
        let mut all = self.refusals.iter();
        all.all(|(_, why)| matches!(why, Refusal::Unknown))
    }
}

impl fmt::Display for NoMaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no sentinel names a master of `{}`", self.service)?;
        for (number, (endpoint, why)) in self.refusals.iter().enumerate() {
            let mark = if number == 0 { ":" } else { ";" };
            write!(f, "{mark} {endpoint}: {why}")?;
        }
        Ok(())
    }
}

impl std::error::Error for NoMaster {}
