//! Compiles and runs the code in the documents; the programs stand beside it.

/// `README.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

/// `lock-runtime/README.md`, the crate's page in a registry.
#[cfg(doctest)]
#[doc = include_str!("../../../lock-runtime/README.md")]
mod crate_page {}

/// `docs/arguments.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/arguments.md")]
mod arguments {}

/// `docs/guide/first-lock.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/first-lock.md")]
mod first_lock {}

/// `docs/operations.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/operations.md")]
mod operations {}

/// `docs/leaders.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/leaders.md")]
mod leaders {}

/// `docs/tickets.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tickets.md")]
mod tickets {}

/// `docs/migrating.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migrating.md")]
mod migrating {}

/// `docs/statuses.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/statuses.md")]
mod statuses {}

/// `docs/blocking.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/blocking.md")]
mod blocking {}

/// `docs/watching.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/watching.md")]
mod watching {}

/// `docs/expansion.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/expansion.md")]
mod expansion {}
