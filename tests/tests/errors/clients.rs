//! What a service may show to its clients.

use std::time::Duration;

use lock_runtime::{LockError, LockManager};

fn all() -> [LockError; 9] {
    [
        LockError::NotConfigured,
        LockError::invalid_key("it is empty"),
        LockError::invalid_options("ttl", "it must be at least 100ms"),
        LockError::contended("order:7"),
        LockError::unavailable("Connection refused"),
        LockError::lost("order:7"),
        LockError::already_held("order:7"),
        LockError::ShutDown,
        LockError::AlreadyInstalled,
    ]
}

// Section: statuses.md#what-a-service-answers
#[test]
fn the_public_message_names_nothing_of_the_inside() {
    let contended = LockError::contended("order:7").to_string();
    for inside in ["order:7", "host", "process 1", "`holder`"] {
        assert!(contended.contains(inside), "{contended}");
    }
    for error in all() {
        let text = error.public_message();
        assert!(text.len() > 20, "{error:?}: {text}");
        for inside in [
            "order:7", "host", "process", "holder", "server", "refused", "ttl", "lock",
        ] {
            assert!(!text.contains(inside), "{error:?}: {text}");
        }
    }
}

#[tokio::test]
async fn a_lock_that_cools_down_is_nobodys_work() {
    let locks = LockManager::connect("memory:").await.unwrap();
    let request = locks.lock("job").min_hold(Duration::from_secs(60));
    request.acquire().await.unwrap().release();
    let error = locks.lock("job").try_once().acquire().await.unwrap_err();
    let text = error.public_message();
    assert!(
        text.contains("was done") && !text.contains("somebody"),
        "{text}"
    );
}

#[test]
fn what_waits_for_itself_is_told_of_the_argument_that_helps() {
    let text = LockError::already_held("order:7").to_string();
    assert!(text.contains("`reentrant`"), "{text}");
}

#[test]
fn errors_made_by_hand_are_those_of_the_runtime() {
    let matches = [
        matches!(all()[1], LockError::InvalidKey { .. }),
        matches!(all()[2], LockError::InvalidOptions { .. }),
        matches!(all()[3], LockError::Contended { .. }),
        matches!(all()[4], LockError::Unavailable { .. }),
        matches!(all()[5], LockError::Lost { .. }),
        matches!(all()[6], LockError::AlreadyHeld { .. }),
    ];
    assert_eq!(matches, [true; 6]);
    let named = all().into_iter().filter(|error| error.key().is_some());
    assert_eq!(named.count(), 3);
}
