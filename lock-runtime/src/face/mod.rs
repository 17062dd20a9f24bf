//! What users see: configuration, manager, requests, and what the attribute's
//! expansion calls.

pub(crate) mod acquire;
mod bounds;
pub(crate) mod config;
pub mod expansion;
pub(crate) mod manager;
pub(crate) mod request;
mod settings;
mod several;
mod shared;
pub(crate) mod site;
#[cfg(feature = "testing")]
pub(crate) mod testing;
