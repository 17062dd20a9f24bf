//! Users and passwords that change while the program runs.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
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

    /// The default user's.
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

    /// A silent provider has failed.
    pub(crate) fn ask(&self) -> Asked {
        let asked = (self.0)();
        Box::pin(async {
            let answer = tokio::time::timeout(PROVIDER_TIMEOUT, asked).await;
            let silent = "the provider of credentials did not answer in time";
            answer.unwrap_or_else(|_| Err(Cause::from(Box::from(silent))))
        })
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fn")
    }
}
