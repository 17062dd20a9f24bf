//! TLS over the socket of a connection.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::types::error::LockError;
use crate::types::tls::{Pem, Roots, Tls};

/// Makes an encrypted stream to one server.
pub(crate) struct Encryption {
    connector: TlsConnector,
    server: ServerName<'static>,
}

/// Checks that the certificates can be read and used for these servers.
pub(crate) fn check(tls: &Tls, hosts: &[&str]) -> Result<(), LockError> {
    hosts
        .iter()
        .try_for_each(|host| Encryption::new(tls, host, None).map(drop))
}

impl Encryption {
    /// Reads the files, which blocks. `alpn` names the protocol that is spoken.
    fn new(tls: &Tls, host: &str, alpn: Option<&str>) -> Result<Self, LockError> {
        let name = tls.server_name.as_deref().unwrap_or(host);
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| invalid("the server's name cannot be in a certificate"))?;
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_root_certificates(roots(&tls.roots)?);
        let mut config = match (&tls.certificate, &tls.key) {
            (None, None) => config.with_no_client_auth(),
            (Some(certificate), Some(key)) => config
                .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
                .map_err(|error| invalid(format_args!("the client's certificate: {error}")))?,
            _ => {
                return Err(invalid(
                    "a client needs both `cert` and `key`, and one is missing",
                ));
            }
        };
        config.alpn_protocols.extend(alpn.map(Into::into));
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            server,
        })
    }

    /// The same for a connection that is opened: the files may have been replaced since
    /// the last one.
    pub(super) async fn read(
        tls: &Tls,
        host: &str,
        alpn: Option<&'static str>,
    ) -> io::Result<Self> {
        let (tls, host) = (tls.clone(), host.to_owned());
        let reading = tokio::task::spawn_blocking(move || Self::new(&tls, &host, alpn));
        reading.await?.map_err(io::Error::other)
    }

    pub(super) async fn over<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.connector.connect(self.server.clone(), stream).await
    }
}

fn roots(roots: &Roots) -> Result<RootCertStore, LockError> {
    let mut store = RootCertStore::empty();
    match roots {
        Roots::Web => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        #[cfg(feature = "tls-native-roots")]
        Roots::Native => {
            // Some of a system's certificates may be unreadable.
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::Own(all) => {
            for pem in all {
                for certificate in certificates(pem)? {
                    store
                        .add(certificate)
                        .map_err(|error| invalid(format_args!("the CA's {error}")))?;
                }
            }
        }
    }
    if store.is_empty() {
        return Err(invalid("no certificate authority is trusted"));
    }
    Ok(store)
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, LockError> {
    let text = read(pem)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(invalid(format_args!("{pem:?} is not a certificate in PEM"))),
    }
}

fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>, LockError> {
    PrivateKeyDer::from_pem_slice(&read(pem)?)
        .map_err(|_| invalid(format_args!("{pem:?} is not a private key in PEM")))
}

fn read(pem: &Pem) -> Result<Vec<u8>, LockError> {
    match pem {
        Pem::Text(text) => Ok(text.clone()),
        Pem::File(path) => std::fs::read(path)
            .map_err(|error| invalid(format_args!("cannot read {}: {error}", path.display()))),
    }
}

fn invalid(reason: impl fmt::Display) -> LockError {
    LockError::invalid("tls", reason)
}
