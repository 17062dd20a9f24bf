//! Proofs of a password, from which an eavesdropper learns nothing.

use sha1_smol::Sha1;
use sha2::{Digest as _, Sha256};

pub(crate) const NATIVE: &str = "mysql_native_password";
pub(crate) const CACHING: &str = "caching_sha2_password";
pub(crate) const CLEAR: &str = "mysql_clear_password";

/// The proof for a plugin; nothing for one that is not supported, and for the one that sends the password itself.
pub(crate) fn proof(plugin: &str, password: &str, salt: &[u8]) -> Option<Vec<u8>> {
    let proof: fn(&[u8], &[u8]) -> Vec<u8> = match plugin {
        NATIVE => native,
        CACHING => caching,
        _ => return None,
    };
    Some(if password.is_empty() {
        Vec::new()
    } else {
        proof(password.as_bytes(), salt)
    })
}

fn native(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let hash = |parts: &[&[u8]]| {
        let mut hash = Sha1::new();
        for part in parts {
            hash.update(part);
        }
        hash.digest().bytes()
    };
    let once = hash(&[password]);
    let twice = hash(&[&once]);
    mixed(&once, &hash(&[salt, &twice]))
}

fn caching(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let salted = Sha256::new().chain_update(twice).chain_update(salt);
    mixed(&once, &salted.finalize())
}

fn mixed(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter()
        .zip(other)
        .map(|(one, other)| one ^ other)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_checked_with_what_a_server_keeps() {
        let salt = b"saltsalttwelve bytes";
        let sent = proof(NATIVE, "hunter2", salt).expect("supported");
        let kept = Sha1::from(Sha1::from("hunter2").digest().bytes())
            .digest()
            .bytes();
        let mut salted = Sha1::from(salt);
        salted.update(&kept);
        let once = mixed(&sent, &salted.digest().bytes());
        assert_eq!(Sha1::from(&once).digest().bytes(), kept);

        let sent = proof(CACHING, "hunter2", salt).expect("supported");
        let kept = Sha256::digest(Sha256::digest("hunter2"));
        let salted = Sha256::new()
            .chain_update(kept)
            .chain_update(salt)
            .finalize();
        assert_eq!(Sha256::digest(mixed(&sent, &salted)), kept);
    }

    #[test]
    fn no_password_needs_no_proof() {
        assert_eq!(proof(NATIVE, "", b"salt").as_deref(), Some(&[][..]));
        assert_eq!(proof("client_ed25519", "a", b"salt"), None);
    }
}
