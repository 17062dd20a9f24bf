//! A lack of trust between client and server.

use std::io;

#[cfg(feature = "tls")]
use tokio_rustls::rustls::{CertificateError, Error};

/// It does not go away by itself.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Distrust(String);

impl Distrust {
    /// For a server that does not begin to encrypt.
    #[cfg(feature = "tls")]
    pub(crate) fn because(why: &str) -> Self {
        Self(why.to_owned())
    }

    /// Whether this is why a connection could not be opened.
    #[cfg(feature = "tls")]
    pub(crate) fn find(error: &io::Error) -> Option<Self> {
        let error = error.get_ref()?;
        if let Some(this) = error.downcast_ref::<Self>() {
            return Some(this.clone());
        }
        let error = error.downcast_ref()?;
        Some(Self(match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                "the server's certificate is from an unknown authority: name the right one with `ca`".into()
            }
            Error::InvalidCertificate(why) => {
                format!("the server's certificate is not accepted: {why}")
            }
            Error::AlertReceived(why) => format!(
                "the server refuses the encrypted connection ({why:?}): it may want a client's certificate \
                 that it knows, with `cert` and `key`"
            ),
            other => other.to_string(),
        }))
    }

    /// Nothing is encrypted.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn find(_error: &io::Error) -> Option<Self> {
        None
    }
}
