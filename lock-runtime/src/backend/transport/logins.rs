//! The users that log in at a server.

use crate::backend::setup::Setup;
use crate::types::credentials::{Asked, Credentials, Provider};
use crate::types::error::Cause;

/// The user in a URL, or a provider that names one for each connection.
#[derive(Clone, Default)]
pub(crate) struct Logins {
    of_url: Option<Credentials>,
    provider: Option<Provider>,
}

impl Logins {
    pub(crate) fn new(of_url: Option<Credentials>, setup: &Setup) -> Self {
        Self {
            of_url,
            provider: setup.credentials.clone(),
        }
    }

    /// The user to log in now, if any. A provider that is silent for too long has failed.
    pub(crate) async fn latest(&self) -> Result<Option<Credentials>, Cause> {
        match &self.provider {
            Some(provider) => provider.ask().await.map(Some),
            None => Ok(self.of_url.clone()),
        }
    }

    /// Asks the provider, if there is one.
    pub(crate) fn ask(&self) -> Option<Asked> {
        self.provider.as_ref().map(Provider::ask)
    }

    /// Whether a password may change while the program runs.
    pub(crate) fn may_change(&self) -> bool {
        self.provider.is_some()
    }

    /// Whether nobody logs in.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_url.is_none() && self.provider.is_none()
    }
}
