//! Users and passwords that change while the program runs.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::types::error::Cause;

/// A user and a password, as
/// [`LockConfig::credentials`](crate::LockConfig::credentials) gets them.
///
/// ```
/// use std::time::Duration;
///
/// use lock_runtime::Credentials;
///
/// # fn main() -> Result<(), lock_runtime::LockError> {
/// let token = Credentials::new("shop", "secret").expires_in(Duration::from_secs(15 * 60));
/// assert!(!format!("{token:?}").contains("secret"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Credentials {
    pub(crate) user: Option<String>,
    pub(crate) password: String,
    pub(crate) expires_in: Option<Duration>,
}

impl Credentials {
    /// A user's password or token.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            user: Some(user.into()),
            ..Self::password(password)
        }
    }

    /// A password for the server's default user.
    pub fn password(password: impl Into<String>) -> Self {
        Self {
            user: None,
            password: password.into(),
            expires_in: None,
        }
    }

    /// How long the password is valid from now on. The provider is asked for the next one earlier.
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.expires_in = Some(time);
        self
    }
}

/// Names the user, never the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("expires_in", &self.expires_in)
            .finish_non_exhaustive()
    }
}

/// The time limit for new credentials, whose source may be far away.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);

/// A provider of credentials.
#[derive(Clone)]
pub(crate) struct Provider(Arc<dyn Fn() -> Asked + Send + Sync>);

/// A request for credentials in flight.
pub(crate) type Asked = Pin<Box<dyn Future<Output = Result<Credentials, Cause>> + Send>>;

impl Provider {
    pub(crate) fn new<F, E>(ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self(Arc::new(move || {
            let asked = ask();
            Box::pin(async move { asked.await.map_err(|error| Cause::from(error.into())) })
        }))
    }

    /// A silent provider has failed, and one that panics: it does so in the turn of the driver, or of a stranger.
    pub(crate) fn ask(&self) -> Asked {
        let Self(provider) = self.clone();
        let failed = |why: &str| Err(Cause::from(Box::from(why)));
        Box::pin(async move {
            let mut asked = None;
            let answer = poll_fn(|cx| {
                let poll = || asked.get_or_insert_with(|| provider()).as_mut().poll(cx);
                let polled = catch_unwind(AssertUnwindSafe(poll));
                polled
                    .unwrap_or_else(|_| Poll::Ready(failed("the provider of credentials panicked")))
            });
            let answer = tokio::time::timeout(PROVIDER_TIMEOUT, answer).await;
            answer.unwrap_or_else(|_| failed("the provider of credentials did not answer in time"))
        })
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fn")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_provider_that_panics_has_failed() {
        type Answer = Result<Credentials, Cause>;
        async fn panics_later() -> Answer {
            tokio::task::yield_now().await;
            panic!("later")
        }
        let at_once = || -> std::future::Ready<Answer> { panic!("at once") };
        for provider in [Provider::new(at_once), Provider::new(panics_later)] {
            let error = provider.ask().await.expect_err("no credentials");
            assert!(error.to_string().contains("panicked"), "{error}");
        }
    }
}
