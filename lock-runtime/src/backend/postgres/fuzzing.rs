//! What PostgreSQL servers send, for `fuzz/`.

use std::sync::Arc;

use super::transport::answers_of;
use crate::backend::sql::fuzzing::read;
use crate::types::error::Cause;

/// Messages as they come in; each answer is read as that to every kind of call. The first byte is one of the kind.
pub fn answers(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    for answer in answers_of(bytes) {
        let warning = answer.warnings.into_iter().next();
        let doubt = warning.map(|it| Arc::new(it) as Cause);
        read(kind, answer.result.map_err(Into::into), doubt);
    }
}
