//! The store on a server of `PostgreSQL`.
#![allow(dead_code)]

mod address;
mod protocol;
mod transport;
