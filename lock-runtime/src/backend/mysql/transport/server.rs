//! The facts about the server of a connection.

use crate::backend::sql::session::Session;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// The session by which the server knows this connection. It is a new one if the server still keeps
    /// the former connection.
    pub(crate) session: Session,
    /// Whether each commit is on the disk of the server before it is answered.
    pub(crate) is_durable: bool,
}
