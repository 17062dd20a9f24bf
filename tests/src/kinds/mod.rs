//! The checks that a lock of every kind passes, and what one kind has to say for them.
//!
//! [`checks_of_kind`](crate::checks_of_kind) makes the tests of one kind.

mod cancellation;
mod crash;
mod load;
mod loss;
mod referee;

use lock_runtime::{LockManager, LockRequest};

pub use cancellation::{leaves_nothing_when_cut_off, leaves_nothing_when_dropped};
pub use crash::is_free_after_a_crash;
pub use load::keeps_its_rule_under_load;
pub use loss::{Fault, stops_the_body};
pub use referee::Referee;

/// In which way a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As locks are held that say nothing else.
    Exclusive,
    /// By one of many readers.
    Reader,
    /// By a writer beside readers.
    Writer,
    /// By one of so many.
    Permits(u32),
    /// Together with another one.
    Several,
}

impl Kind {
    /// A request of this kind.
    pub fn request(self, locks: &LockManager, key: &str) -> LockRequest {
        match self {
            Self::Exclusive | Self::Writer => locks.lock(key),
            Self::Reader => locks.lock(key).read(),
            Self::Permits(most) => locks.lock(key).permits(most),
            Self::Several => locks.lock_all(self.names(key)),
        }
    }

    /// The names of all that such a request locks.
    pub fn names(self, key: &str) -> Vec<String> {
        match self {
            Self::Several => vec![format!("{key}:b"), format!("{key}:a")],
            _ => vec![key.to_owned()],
        }
    }

    /// How many more hold the lock beside one of this kind, at the most that a test tries.
    pub fn neighbours(self) -> u32 {
        match self {
            Self::Reader => 2,
            Self::Permits(most) => most - 1,
            _ => 0,
        }
    }

    /// Requests that wait while one of this kind and its [`neighbours`](Self::neighbours) hold the lock, and take what
    /// becomes free when that one has gone (behind a reader: when all have).
    pub fn rivals(self, locks: &LockManager, key: &str) -> Vec<LockRequest> {
        match self {
            Self::Writer => vec![locks.lock(key).read()],
            Self::Permits(_) => vec![self.request(locks, key)],
            Self::Exclusive | Self::Reader | Self::Several => {
                let names = self.names(key).into_iter();
                names.map(|name| locks.lock(name)).collect()
            }
        }
    }

    /// The word by which a worker knows it.
    pub fn word(self) -> String {
        match self {
            Self::Exclusive => "exclusive".to_owned(),
            Self::Reader => "reader".to_owned(),
            Self::Writer => "writer".to_owned(),
            Self::Permits(most) => format!("permits:{most}"),
            Self::Several => "several".to_owned(),
        }
    }

    /// Reads such a word.
    pub fn parse(word: &str) -> Self {
        match word {
            "exclusive" => Self::Exclusive,
            "reader" => Self::Reader,
            "writer" => Self::Writer,
            "several" => Self::Several,
            _ => {
                let most = word.strip_prefix("permits:").expect("a kind");
                Self::Permits(most.parse().expect("a number"))
            }
        }
    }
}

/// Makes the tests of one kind, in a module of that name; in brackets is what a store needs for it.
#[macro_export]
macro_rules! checks_of_kind {
    ($name:ident, $kind:expr, [$($need:ident)*]) => {
        mod $name {
            use $crate::{
                Store,
                kinds::{self, Fault, Kind},
            };

            const KIND: Kind = $kind;

            $crate::on_every_store! {
                keeps_its_rule_under_load [$($need)* fencing],
                leaves_nothing_when_dropped [$($need)* fair],
            }

            async fn keeps_its_rule_under_load(store: Store) {
                kinds::keeps_its_rule_under_load(store, KIND).await;
            }

            async fn leaves_nothing_when_dropped(store: Store) {
                kinds::leaves_nothing_when_dropped(store, KIND).await;
            }

            #[tokio::test]
            async fn is_free_after_a_crash() {
                kinds::is_free_after_a_crash(env!("CARGO_BIN_EXE_worker"), KIND).await;
            }

            #[tokio::test]
            async fn leaves_nothing_when_cut_off() {
                kinds::leaves_nothing_when_cut_off(KIND).await;
            }

            #[tokio::test]
            async fn is_lost_when_its_owner_is_deleted() {
                kinds::stops_the_body(KIND, Fault::OwnerDeleted).await;
            }

            #[tokio::test]
            async fn is_lost_when_all_of_it_is_deleted() {
                kinds::stops_the_body(KIND, Fault::Flushed).await;
            }

            #[tokio::test]
            async fn is_lost_when_the_server_is_killed() {
                kinds::stops_the_body(KIND, Fault::ServerKilled).await;
            }
        }
    };
}
