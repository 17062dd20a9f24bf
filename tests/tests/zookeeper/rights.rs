//! Users: what one has created, others cannot touch.

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{LONG, PATIENCE, take_turn, within};

use crate::{manager, server};

#[tokio::test]
async fn the_nodes_of_a_user_are_closed_to_others() {
    let Some(server) = server().await else { return };
    let url = |user: &str| format!("zookeeper://{user}{}/rights", server.addr());
    let locks = manager(&url("me:p%40ss@"), LONG).await;
    let same = manager(&url("me:p%40ss@"), LONG).await;
    take_turn(&locks, "key").await;
    take_turn(&same, "key").await;
    for stranger in ["", "me:wrong@", "you:p%40ss@"] {
        let config = LockConfig::new(url(stranger)).unwrap();
        let refused = LockManager::connect(config.connect_timeout(Duration::from_secs(10)));
        let error = within(PATIENCE, refused).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, LockError::Unavailable { .. }), "{text}");
        assert!(text.contains("has no right to the nodes"), "{text}");
        assert!(!text.contains("p@ss") && !text.contains("wrong"), "{text}");
    }
}
