//! The interface for programs: configuration, manager, requests, and the functions for expanded
//! code.

pub(crate) mod acquire;
mod bounds;
pub(crate) mod config;
#[cfg(feature = "serde")]
mod deserialize;
pub(crate) mod election;
pub mod expansion;
pub(crate) mod function;
mod graph;
pub(crate) mod installed;
pub(crate) mod leaders;
pub(crate) mod leadership;
pub(crate) mod locked;
pub(crate) mod manager;
mod named;
#[cfg(test)]
mod new_store;
pub(crate) mod request;
mod settings;
mod several;
mod shared;
pub(crate) mod site;
mod sources;
#[cfg(feature = "testing")]
pub(crate) mod testing;
