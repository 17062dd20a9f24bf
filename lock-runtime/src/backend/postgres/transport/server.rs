//! The facts about the server of a connection.

use crate::backend::postgres::address::Wake;
use crate::backend::sql::session::Session;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// The session by which the server knows this connection. It is a new one if the server still keeps
    /// the former connection.
    pub(crate) session: Session,
    /// As in 150003 for 15.3.
    pub(crate) version: u32,
    /// Whether a pooler is in between, so that each call may go over another connection.
    pub(crate) is_pooled: bool,
    /// Whether notifications arrive, and the session counts as gone when nobody holds its bell.
    pub(crate) listens: bool,
    /// Whether commits wait for standbys, so that a grant counts while the server still waits for the same ones.
    pub(crate) waits_for_standbys: bool,
}

impl Server {
    pub(super) fn new(session: Session, version: u32, is_pooled: bool, wake: Option<Wake>) -> Self {
        Self {
            session,
            version,
            is_pooled,
            listens: match wake {
                Some(wake) => wake == Wake::Listen,
                None => !is_pooled,
            },
            waits_for_standbys: false,
        }
    }
}
