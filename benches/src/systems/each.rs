//! A connection for each task.

use tokio::sync::OnceCell;

use super::Locks;

/// The same locks, where no task shares its connection with another one.
pub(crate) struct Each<L> {
    url: String,
    own: OnceCell<L>,
}

impl<L> Clone for Each<L> {
    fn clone(&self) -> Self {
        Self {
            url: self.url.clone(),
            own: OnceCell::new(),
        }
    }
}

impl<L: Locks> Locks for Each<L> {
    type Guard = L::Guard;

    async fn connect(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            own: OnceCell::new(),
        }
    }

    async fn take(&self, key: &str) -> L::Guard {
        let own = self.own.get_or_init(|| L::connect(&self.url)).await;
        own.take(key).await
    }

    async fn free(&self, guard: L::Guard) {
        let own = self.own.get().expect("it took the lock");
        own.free(guard).await;
    }
}
