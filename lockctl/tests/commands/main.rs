//! Promise: every command does what its help says, on a real server, for people and for programs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod browser;
mod deadlocks;
mod history;
mod http;
mod inspecting;
mod lost;
mod process;
mod running;
mod screen;
mod serving;
mod support;
mod terminal;
mod top;
mod unanswered;
mod watching;
