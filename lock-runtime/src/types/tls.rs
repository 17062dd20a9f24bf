//! The trusted certificate authorities of a connection, and its client certificate.

use std::fmt;
use std::path::PathBuf;

/// The encryption of connections: the trusted certificate authorities, and a client certificate.
/// By default, the public authorities are trusted, and no certificate is sent. `connect`, `init`
/// and [`validate`](crate::LockConfig::validate) read and check the files, and each new connection
/// reads them again: they may be replaced while the program runs.
///
/// ```
/// # fn example() -> Result<(), lock_runtime::LockError> {
/// use lock_runtime::{LockConfig, Tls};
///
/// let tls = Tls::new()
///     .ca_file("/etc/locks/ca.pem")
///     .client_files("/etc/locks/client.pem", "/etc/locks/client.key");
/// let config = LockConfig::new("rediss://locks.example")?.tls(tls);
/// # Ok(()) }
/// # example().unwrap();
/// ```
#[derive(Clone, Default)]
#[must_use = "it does nothing before `LockConfig::tls`"]
pub struct Tls {
    pub(crate) roots: Roots,
    pub(crate) certificate: Option<Pem>,
    pub(crate) key: Option<Pem>,
    pub(crate) server_name: Option<String>,
}

/// The certificate authorities that are trusted.
#[derive(Clone, Default)]
pub(crate) enum Roots {
    #[default]
    Web,
    #[cfg(feature = "tls-native-roots")]
    Native,
    Own(Vec<Pem>),
}

/// Text in the format PEM, and where it is.
#[derive(Clone)]
pub(crate) enum Pem {
    Text(Vec<u8>),
    File(PathBuf),
}

impl Tls {
    /// Trusts the public certificate authorities.
    ///
    /// ```
    /// use lock_runtime::{LockConfig, Tls};
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let config = LockConfig::new("rediss://locks.example")?.tls(Tls::new());
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts only these certificates, in the format PEM. Several calls add to each other.
    ///
    /// ```
    /// use lock_runtime::{LockConfig, Tls};
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let tls = Tls::new().ca_pem("-----BEGIN CERTIFICATE-----\n…");
    /// let config = LockConfig::new("rediss://locks.example")?.tls(tls);
    /// assert!(config.validate().is_err(), "it is cut off");
    /// # Ok(()) }
    /// ```
    pub fn ca_pem(self, certificates: impl Into<Vec<u8>>) -> Self {
        self.ca(Pem::Text(certificates.into()))
    }

    /// Like [`ca_pem`](Self::ca_pem), from a file.
    ///
    /// ```
    /// use lock_runtime::{LockConfig, Tls};
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let tls = Tls::new().ca_file("/no/such/ca.pem");
    /// let config = LockConfig::new("rediss://locks.example")?.tls(tls);
    /// assert!(config.validate().is_err());
    /// # Ok(()) }
    /// ```
    pub fn ca_file(self, path: impl Into<PathBuf>) -> Self {
        self.ca(Pem::File(path.into()))
    }

    /// Trusts the certificate authorities that the operating system trusts.
    ///
    /// ```
    /// use lock_runtime::{LockConfig, Tls};
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let config = LockConfig::new("rediss://locks.example")?.tls(Tls::new().native_roots());
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tls-native-roots")]
    pub fn native_roots(mut self) -> Self {
        self.roots = Roots::Native;
        self
    }

    /// Sends the server a client certificate, and proves its possession with its key; both in the
    /// format PEM.
    ///
    /// ```
    /// use lock_runtime::Tls;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let (certificate, key) = ("-----BEGIN CERTIFICATE-----\n…", "-----BEGIN PRIVATE KEY-----\n…");
    /// let tls = Tls::new().client_pem(certificate, key);
    /// assert!(!format!("{tls:?}").contains("PRIVATE"));
    /// # Ok(()) }
    /// ```
    pub fn client_pem(self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.certificate(Pem::Text(certificate.into()))
            .key(Pem::Text(key.into()))
    }

    /// Like [`client_pem`](Self::client_pem), from files.
    ///
    /// ```
    /// use lock_runtime::{LockConfig, Tls};
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let tls = Tls::new().client_files("/etc/locks/client.pem", "/etc/locks/client.key");
    /// let config = LockConfig::new("rediss://locks.example")?.tls(tls);
    /// # Ok(()) }
    /// ```
    pub fn client_files(self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate(Pem::File(certificate.into()))
            .key(Pem::File(key.into()))
    }

    /// The name in the server's certificate; the URL's host by default.
    ///
    /// ```
    /// use lock_runtime::{LockConfig, Tls};
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// // The certificate names a host, and the URL an address.
    /// let tls = Tls::new().server_name("locks.example");
    /// let config = LockConfig::new("rediss://10.0.0.7")?.tls(tls);
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    pub(crate) fn certificate(mut self, pem: Pem) -> Self {
        self.certificate = Some(pem);
        self
    }

    pub(crate) fn key(mut self, pem: Pem) -> Self {
        self.key = Some(pem);
        self
    }

    fn ca(mut self, pem: Pem) -> Self {
        if let Roots::Own(all) = &mut self.roots {
            all.push(pem);
        } else {
            self.roots = Roots::Own(vec![pem]);
        }
        self
    }
}

/// The names of its settings in a URL.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("ca", &self.roots)
            .field("cert", &self.certificate)
            .field("key", &self.key)
            .field("server_name", &self.server_name)
            .finish()
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Web => f.write_str("webpki-roots"),
            #[cfg(feature = "tls-native-roots")]
            Self::Native => f.write_str("native roots"),
            Self::Own(pems) => pems.fmt(f),
        }
    }
}

/// Names the file, never a key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("PEM"),
            Self::File(path) => path.fmt(f),
        }
    }
}
