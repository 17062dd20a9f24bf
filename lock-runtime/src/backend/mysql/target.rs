//! The URLs of the store, and what its locks support.

use std::sync::Arc;

use super::address::Address;
use crate::backend::capabilities::Capabilities;
use crate::backend::scheme::Scheme;
use crate::backend::setup::Setup;
use crate::backend::{Connecting, Quarantine, Target};
use crate::types::authority::names_if;
use crate::types::error::LockError;
use crate::types::url::Url;

pub(crate) const SCHEMES: &[Scheme] = &[
    Scheme::plain("mysql://", target),
    Scheme::plain("mariadb://", target),
];

fn target(url: &mut Url, _: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::parse(url)?))
}

impl Target for Address {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            answers: false,
            ..Capabilities::all("MySQL")
        }
    }

    fn encrypted_hosts(&self) -> Vec<&str> {
        names_if(self.encrypted, &self.hosts)
    }

    fn quarantine(&self) -> Quarantine {
        Quarantine::IfSet
    }

    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a> {
        Box::pin(super::connect(setup, self))
    }
}
