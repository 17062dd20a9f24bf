//! Stories of claims, sessions and watches.
