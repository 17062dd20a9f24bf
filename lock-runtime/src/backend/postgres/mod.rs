//! The store on a PostgreSQL server.
#![allow(dead_code)]

mod address;
mod protocol;
mod transport;
