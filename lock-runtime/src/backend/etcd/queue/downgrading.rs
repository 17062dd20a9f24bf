//! Writers that go on as readers. An entry keeps its key, and with it its position, and says in its value
//! that it is a reader's; those behind it watch it, and look again when it is written.

use super::claim::{Downgrade, Stage};
use super::{Queue, Step};
use crate::backend::etcd::protocol::call::Call;
use crate::backend::etcd::protocol::entry;
use crate::backend::etcd::protocol::messages::TxnResponse;
use crate::backend::{Outcome, name};
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

impl Queue {
    pub(super) fn downgrade(&mut self, now: Moment, id: LeaseId) {
        let claim = self.claims.get_mut(&id);
        if let Some(claim) = claim.filter(|claim| claim.is_held()) {
            claim.downgrade = Some(Downgrade::Asked);
            self.go_on(now, id);
        }
    }

    pub(super) fn go_on_downgrading(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let Stage::Held { granted } = claim.stage else {
            return;
        };
        let name = name::name(claim.token, &claim.terms);
        let value = entry::value_of(claim.lasts(), now.since(granted), &name);
        let call = Call::rewrite_as_read(claim.key.clone(), claim.modified, claim.as_held(value));
        self.send(now, id, Step::Downgrade, call);
    }

    /// Those behind have been notified, the entry was written by somebody else, or it is gone.
    pub(super) fn downgraded(&mut self, now: Moment, id: LeaseId, txn: TxnResponse) {
        let claim = self.claims.get_mut(&id);
        let Some(claim) = claim.filter(|it| it.is_held()) else {
            return;
        };
        claim.modified = txn.revision();
        let mut is_done = txn.succeeded;
        if !is_done {
            let found = txn.ranges().next().unwrap_or_default().kvs.pop();
            let own = found.filter(|own| own.create_revision == claim.created);
            let Some(own) = own else {
                return self.lose(id);
            };
            claim.modified = own.mod_revision;
            // An earlier call, whose answer was lost, may have done it.
            is_done = entry::is_downgraded(&own.value);
            if entry::is_asked(&own.value) {
                self.claims.report(Outcome::Wanted { id });
            }
        }
        if is_done && let Some(claim) = self.claims.get_mut(&id) {
            claim.downgrade = Some(Downgrade::Done);
            // This write has notified those behind. An announcement would make the entry a writer's again.
            claim.announces = false;
            let result = Ok(());
            self.claims.report(Outcome::Downgraded { id, result });
        }
        self.settle(now, id);
    }

    pub(super) fn not_downgraded(&mut self, id: LeaseId, cause: Cause) {
        let result = Err(cause);
        self.claims.report(Outcome::Downgraded { id, result });
    }
}
