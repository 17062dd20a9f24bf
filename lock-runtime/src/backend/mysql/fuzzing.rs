//! What MySQL servers send, for `fuzz/`.

use super::protocol::greeting::Greeting;
use super::transport::answers_of;
use crate::backend::sql::fuzzing::read;

/// Packets as they come in; each answer is read as that to every kind of call. The first byte is one of the kind.
pub fn answers(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    let _ = Greeting::read(bytes);
    for answer in answers_of(bytes) {
        read(kind, answer.map_err(Into::into), None);
    }
}
