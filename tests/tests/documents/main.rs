//! Promise: what the documents name exists, and what is listed in two places is the same in both.

mod arguments;
mod code_blocks;
mod events;
mod metrics;
mod named_tests;
mod planted;
mod references;
mod repository;
mod spans;
