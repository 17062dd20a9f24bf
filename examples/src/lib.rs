//! Compiles and runs the code in the documents; the programs stand one folder up.

/// `README.md`.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

/// `docs/operations.md`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/operations.md")]
mod operations {}
