//! Certificates for servers and clients that encrypt, from an authority of the test's own.

use std::{net::Ipv4Addr, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::fixtures::unique;

/// A certificate authority.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in the format PEM.
#[derive(Debug)]
pub struct Identity {
    /// What it shows.
    pub certificate: String,
    /// What it keeps.
    pub key: String,
}

impl Authority {
    /// One that nobody knows yet.
    #[expect(clippy::new_without_default, reason = "each one is another")]
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        // A name of its own: certificates are matched with their issuers by name first.
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, unique("authority"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, key()).expect("a certificate"))
    }

    /// What to trust.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a host of this name or address.
    pub fn issue(&self, name: &str) -> Identity {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let key = key();
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// One for the servers of tests.
    pub fn issue_for_loopback(&self) -> Identity {
        self.issue(&Ipv4Addr::LOCALHOST.to_string())
    }
}

impl Identity {
    /// Writes `NAME.pem` and `NAME.key`.
    pub fn write(&self, directory: &Path, name: &str) {
        for (extension, text) in [("pem", &self.certificate), ("key", &self.key)] {
            let path = directory.join(name).with_extension(extension);
            std::fs::write(path, text).expect("a file");
        }
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}
