//! A service behind Redis Sentinel: which of its servers is the master, and when that
//! changes.

mod question;
mod sentinels;
mod service;
mod watch;
mod words;

pub(crate) use question::Master;
#[cfg(fuzzing)]
pub(in crate::backend::redis) use question::read;
pub(crate) use sentinels::{NoMaster, Sentinels};
pub(crate) use service::Service;
pub(crate) use watch::Watch;
