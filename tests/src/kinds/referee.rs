//! Counts who is inside each lock, and complains when the rule of a kind is broken.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use lock_runtime::FencingToken;

use super::Kind;

/// Sees everybody who enters and leaves.
#[derive(Debug, Default)]
pub struct Referee(Mutex<HashMap<String, Inside>>);

#[derive(Debug, Default)]
struct Inside {
    alone: u32,
    sharing: u32,
    /// The fences of those who came so far: the highest of those who were alone, and of all.
    highest_alone: u64,
    highest: u64,
    /// How often somebody has entered, and how many were inside at once at the most.
    entered: u64,
    most: u32,
}

impl Referee {
    /// Somebody enters; panics when it is not their turn.
    ///
    /// A fence is larger than those of all before, but those who share come in at the same time, in no order.
    pub fn enter(&self, name: &str, kind: Kind, fence: FencingToken) {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = locks.entry(name.to_owned()).or_default();
        let fence = fence.get();
        let shares = match kind {
            Kind::Reader => u32::MAX,
            Kind::Permits(most) => most,
            _ => 0,
        };
        assert_eq!(inside.alone, 0, "{name}: somebody came to a lonely one");
        if shares == 0 {
            assert_eq!(inside.sharing, 0, "{name}: not alone");
            assert!(inside.highest < fence, "{name}: {fence} came late");
            inside.alone += 1;
            inside.highest_alone = fence;
        } else {
            assert!(inside.sharing < shares, "{name}: more than {shares}");
            assert!(inside.highest_alone < fence, "{name}: {fence} came late");
            inside.sharing += 1;
        }
        inside.highest = inside.highest.max(fence);
        inside.most = inside.most.max(inside.sharing);
        inside.entered += 1;
    }

    /// They leave.
    pub fn leave(&self, name: &str, kind: Kind) {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = locks.get_mut(name).expect("somebody has entered");
        match kind {
            Kind::Reader | Kind::Permits(_) => inside.sharing -= 1,
            _ => inside.alone -= 1,
        }
    }

    /// How often somebody has entered, over all names.
    pub fn entered(&self) -> u64 {
        let locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        locks.values().map(|inside| inside.entered).sum()
    }

    /// How many shared one lock at once, at the most.
    pub fn most(&self) -> u32 {
        let locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = locks.values().map(|inside| inside.most).max();
        most.unwrap_or_default()
    }
}
