//! A service behind Redis Sentinel: which of its servers is the master, and when that
//! changes.

mod question;
mod sentinels;
mod service;
mod watch;
mod words;

pub(crate) use question::Master;
pub(crate) use sentinels::{NoMaster, Sentinels};
pub(crate) use service::Service;
pub(crate) use watch::Watch;
