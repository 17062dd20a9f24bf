//! The questions of a link behind the calls of a pipeline: whether their answers count.

use redis::{Pipeline, Value};

use crate::backend::queue::protocol::trouble::ServerSaid;
use crate::backend::redis::protocol::call::{Call, Sent};
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::trouble::IS_REPLICA;
use crate::backend::redis::transport::connect::Dialer;
use crate::backend::redis::transport::prepare::is_master;
use crate::backend::redis::transport::quarantine::Standing;

/// The questions at the end of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubts {
    /// Whether the server may have forgotten locks.
    standing: bool,
    /// Whether it is a replica, which answers from data that may be old.
    role: bool,
}

/// Whether a server is asked for its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Asked,
    /// It is forbidden, or the server sends us to its master by itself.
    LeftOut,
}

impl Question {
    pub(super) fn of_role(dialer: &Dialer) -> Self {
        if dialer.may_find_replica() {
            Self::Asked
        } else {
            Self::LeftOut
        }
    }
}

impl Doubts {
    /// Adds the questions that these calls need to their pipeline.
    pub(super) fn ask(
        sent: &[Sent],
        standing: Option<&Standing>,
        role: Question,
        pipeline: &mut Pipeline,
    ) -> Self {
        let doubts = Self {
            standing: standing.is_some() && sent.iter().any(|it| it.call.may_win()),
            role: role == Question::Asked && sent.iter().any(|it| is_read(&it.call)),
        };
        if doubts.standing {
            pipeline.add_command(Standing::question());
        }
        if doubts.role {
            pipeline.cmd("ROLE");
        }
        doubts
    }

    /// Takes their answers out. Says why none of the others counts, if so.
    pub(super) fn settle(
        self,
        values: &mut Vec<Value>,
        before: Option<&Standing>,
        asked: &mut Question,
    ) -> Option<ServerSaid> {
        let role = self.role.then(|| values.pop().unwrap_or(Value::Nil));
        let standing = self.standing.then(|| values.pop().unwrap_or(Value::Nil));
        if let Some(Value::ServerError(_)) = role {
            // That may be forbidden.
            *asked = Question::LeftOut;
        } else if role.is_some_and(|role| !is_master(&role)) {
            return Some(ServerSaid(IS_REPLICA.into()));
        }
        let refused = values.iter().all(|it| matches!(it, Value::ServerError(_)));
        let changed = standing
            .zip(before)
            .is_some_and(|(now, before)| before.has_changed(&now, refused));
        changed.then(|| ServerSaid("the server was a replica for a while".into()))
    }
}

/// Whether a replica would answer it, perhaps from old data.
fn is_read(call: &Call) -> bool {
    matches!(
        call,
        Call::Step(
            Inspect::Status(_) | Inspect::Scan { .. } | Inspect::Overview(_) | Inspect::Echo
        )
    )
}
