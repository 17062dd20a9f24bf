//! One connection to a server: opened, prepared for calls, and polled.

pub(crate) mod dialer;
mod install;
pub(crate) mod link;
mod login;
mod open;
mod prepare;
pub(crate) mod server;
mod standbys;
#[cfg(test)]
mod tests;
pub(crate) mod trouble;
mod wire;
