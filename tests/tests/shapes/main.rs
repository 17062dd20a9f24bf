//! Promise: the attribute takes every shape of function that services write, and adds no warning to it.
#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod arguments;
mod async_traits;
mod beside;
mod bodies;
mod expressions;
mod failures;
mod functions;
mod generics;
mod harness;
mod keys;
mod lost;
mod managers;
mod modes;
mod names;
mod receivers;
mod returns;
mod settings;
mod several_keys;
mod shop;
mod size;
mod written_by_macros;
