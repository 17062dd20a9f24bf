//! Promise: what the documents name exists, and what is listed in two places is the same in both.

mod arguments;
mod code_blocks;
mod errors;
mod events;
mod glossary;
mod index;
mod metrics;
mod named_tests;
mod planted;
mod readme;
mod references;
mod shown;
mod site;
mod spans;

use tests::documents::repository;
