//! Passwords that change and expire while locks are held.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lock_runtime::{Credentials, LockConfig, LockManager};
use tests::{LONG, RedisServer, eventually, within};

use crate::{TIME_LIMIT, config, connect, unavailable};

/// A server, and the passwords that a provider will give, the last of them again and again.
struct Vault {
    server: RedisServer,
    passwords: Arc<Mutex<Vec<&'static str>>>,
    asked: Arc<AtomicUsize>,
}

impl Vault {
    async fn new(passwords: &[&'static str]) -> Self {
        let vault = Self {
            server: RedisServer::start().await,
            passwords: Arc::new(Mutex::new(passwords.to_vec())),
            asked: Arc::default(),
        };
        vault.only("right").await;
        vault
    }

    /// The server knows this password alone.
    async fn only(&self, password: &str) {
        let password = format!(">{password}");
        let rights = ["on", "resetpass", &password, "~*", "&*", "+@all"];
        let user = ["ACL", "SETUSER", "shop"];
        self.server.cmd(&[&user[..], &rights].concat()).await;
    }

    fn config(&self, expires_in: Option<Duration>) -> LockConfig {
        let (passwords, asked) = (Arc::clone(&self.passwords), Arc::clone(&self.asked));
        config(self.server.url()).credentials(move || {
            asked.fetch_add(1, Ordering::SeqCst);
            let mut passwords = passwords.lock().unwrap();
            let password = match passwords.len() {
                1 => passwords[0],
                _ => passwords.remove(0),
            };
            async move {
                // It may come from far away.
                tokio::time::sleep(Duration::from_millis(10)).await;
                let credentials = Credentials::new("shop", password);
                io::Result::Ok(match expires_in {
                    Some(time) => credentials.expires_in(time),
                    None => credentials,
                })
            }
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

// Section: guarantees.md#the-lock-goes-on
#[tokio::test]
async fn a_password_that_changes_while_a_lock_is_held() {
    let vault = Vault::new(&["right"]).await;
    let locks = connect(vault.config(None)).await;
    let request = locks.lock("key").ttl(Duration::from_secs(3));
    let guard = request.acquire().await.unwrap();
    *vault.passwords.lock().unwrap() = vec!["new"];
    vault.only("new").await;
    vault.server.kill_all_clients().await;
    let work = guard.hold(tokio::time::sleep(Duration::from_secs(4)));
    within(TIME_LIMIT, work).await.expect("the lock is kept");
    assert!(guard.release_confirmed().await.unwrap());
    assert_eq!(vault.asked(), 2, "once for each connection");
}

#[tokio::test]
async fn a_password_that_is_wrong_is_asked_for_once_more() {
    let vault = Vault::new(&["stale", "right"]).await;
    let locks = connect(vault.config(None)).await;
    assert_eq!(vault.asked(), 2);
    locks.lock("key").acquire().await.unwrap().release();

    let vault = Vault::new(&["wrong"]).await;
    let (text, took) = unavailable(LockManager::connect(vault.config(None))).await;
    assert!(
        text.contains("assword") || text.contains("WRONGPASS"),
        "{text}"
    );
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(vault.asked(), 2);
}

// Section: guarantees.md#the-lock-goes-on
#[tokio::test]
async fn a_password_is_renewed_before_it_expires() {
    let vault = Vault::new(&["right"]).await;
    let locks = connect(vault.config(Some(Duration::from_secs(1)))).await;
    let connections = vault.server.subscribers().await;
    let guard = locks.lock("key").acquire().await.unwrap();
    eventually(TIME_LIMIT, async || vault.server.calls("auth").await >= 2).await;
    assert_eq!(
        vault.server.subscribers().await,
        connections,
        "the same one"
    );
    // A failure is tried again.
    *vault.passwords.lock().unwrap() = vec!["wrong", "right"];
    eventually(TIME_LIMIT, async || {
        vault.server.errors("WRONGPASS").await > 0
    })
    .await;
    let calls = vault.server.calls("auth").await;
    eventually(TIME_LIMIT, async || {
        vault.server.calls("auth").await > calls
    })
    .await;
    assert_eq!(
        vault.server.subscribers().await,
        connections,
        "the same one"
    );
    assert!(guard.release_confirmed().await.unwrap());
}

/// A server may end each connection whose credentials have expired.
#[tokio::test]
async fn the_connection_to_the_replicas_logs_in_again_too() {
    let vault = Vault::new(&["right"]).await;
    let replica = RedisServer::start().await;
    let port = vault.server.addr().port().to_string();
    replica.cmd(&["REPLICAOF", "127.0.0.1", &port]).await;
    eventually(TIME_LIMIT, async || {
        vault.server.cmd(&["WAIT", "1", "100"]).await == redis::Value::Int(1)
    })
    .await;
    let expires_in = Some(Duration::from_secs(1));
    let locks = connect(vault.config(expires_in).replicas(1).pool_size(1)).await;
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    // The other one is subscribed.
    let last = async || {
        let clients = vault.server.cmd(&["CLIENT", "LIST"]).await;
        let clients: String = redis::from_redis_value(clients).unwrap();
        let mut lines = clients.lines().map(str::to_owned);
        lines.find(|it| it.contains("user=shop ") && it.contains(" sub=0 "))
    };
    eventually(TIME_LIMIT, async || {
        last().await.is_some_and(|it| it.contains(" cmd=auth "))
    })
    .await;
    assert!(guard.release_confirmed().await.unwrap());
}

#[tokio::test]
async fn a_provider_that_fails_says_why() {
    let server = RedisServer::start().await;
    let config = config(server.url())
        .connect_timeout(Duration::from_millis(300))
        .credentials(|| async { Err("the vault is closed") });
    let (text, _) = unavailable(LockManager::connect(config)).await;
    assert!(text.contains("the vault is closed"), "{text}");
}

#[test]
fn no_text_shows_the_password() {
    let credentials = Credentials::new("shop", "hunter2");
    let text = format!("{credentials:?}");
    assert!(text.contains("shop") && !text.contains("hunter2"), "{text}");
}
