//! Short programs, each a real use of the lock: see the files beside this crate.
