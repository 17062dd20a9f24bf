//! Durations in all their forms, and the other settings.

use std::time::Duration;

use lock_runtime::{LockError, distributed_lock};

use crate::harness::{refused, shape};
use crate::shop::{Result, Shop, pause, shop};

/// Longer than this no shape holds its lock.
const MINUTE: Duration = Duration::from_secs(60);

const TTL: Duration = Duration::from_secs(90);

mod limits {
    use std::time::Duration;

    pub(super) const WAIT: Duration = super::MINUTE;
    pub(super) const MIN_HOLD: Duration = Duration::from_millis(50);
}

/// Functions that return how long their lock would last, by the text of their `ttl`.
macro_rules! lasting {
    ($($name:ident: $ttl:literal, $wait:literal, $seconds:literal;)*) => {$(
        #[test]
        fn $name() {
            #[distributed_lock(key = "lasts", ttl = $ttl, wait = $wait, guard = lock)]
            async fn lasts() -> Result<Duration> {
                pause().await;
                Ok(lock.remaining())
            }
            let name = concat!("ttl = \"", $ttl, "\", wait = \"", $wait, "\"");
            lasts_about(Duration::from_secs($seconds), shape(name, "lasts", lasts()).unwrap());
        }
    )*};
}

lasting! {
    seconds: "100s", "5s", 100;
    milliseconds: "100000ms", "1500ms", 100;
    minutes_and_seconds: "1m 30s", "1m", 90;
    hours: "24h", "1h", 86_400;
    without_blanks: "1h1m1s1ms", "1s500ms", 3_661;
    forever: "2m", "forever", 120;
}

/// The lease ends a little before its ttl does.
#[track_caller]
fn lasts_about(ttl: Duration, remaining: Duration) {
    assert!(remaining < ttl && remaining > ttl / 2, "{remaining:?}");
}

#[distributed_lock(key = "constant", ttl = TTL, wait = limits::WAIT, guard = lock)]
async fn constants() -> Result<Duration> {
    pause().await;
    Ok(lock.remaining())
}

#[test]
fn constants_of_modules() {
    let call = constants();
    lasts_about(
        TTL,
        shape("ttl = TTL, wait = limits::WAIT", "constant", call).unwrap(),
    );
}

trait Patient {
    const TIME_LIMIT: Duration;

    async fn wait(&self) -> Result<Duration>;
}

impl Patient for Shop {
    const TIME_LIMIT: Duration = Duration::from_secs(100);

    #[distributed_lock(key = "own", ttl = Self::TIME_LIMIT, wait = Self::TIME_LIMIT, guard = lock)]
    async fn wait(&self) -> Result<Duration> {
        pause().await;
        Ok(lock.remaining())
    }
}

#[test]
fn constants_of_the_type() {
    let shop = shop();
    let remaining = shape("ttl = Self::TIME_LIMIT", "own", shop.wait());
    lasts_about(Shop::TIME_LIMIT, remaining.unwrap());
}

#[distributed_lock(key = "generic", ttl = T::TIME_LIMIT, wait = <T as Patient>::TIME_LIMIT, guard = lock)]
async fn generic<T: Patient + Sync>(patient: &T) -> Result<Duration> {
    pause().await;
    let _ = patient;
    Ok(lock.remaining())
}

#[test]
fn constants_of_a_type_parameter() {
    let shop = shop();
    let remaining = shape("ttl = T::TIME_LIMIT", "generic", generic(&shop));
    lasts_about(Shop::TIME_LIMIT, remaining.unwrap());
}

struct Waiting<Kind>(Kind);

impl<Kind: Patient + Sync> Waiting<Kind> {
    #[distributed_lock(key = "kind", ttl = Kind::TIME_LIMIT, guard = lock)]
    async fn wait(&self) -> Result<Duration> {
        pause().await;
        let _ = &self.0;
        Ok(lock.remaining())
    }
}

#[test]
fn constants_of_a_type_parameter_with_a_name() {
    let waiting = Waiting(shop());
    let remaining = shape("ttl = Kind::TIME_LIMIT", "kind", waiting.wait());
    lasts_about(Shop::TIME_LIMIT, remaining.unwrap());
}

#[distributed_lock(key = "once", wait = "0s")]
async fn once() -> Result<u32, LockError> {
    pause().await;
    Ok(1)
}

#[test]
fn one_try() {
    let error = refused("wait = \"0s\"", "once", once()).unwrap_err();
    assert!(matches!(error, LockError::Contended { waited, .. } if waited < MINUTE));
}

#[distributed_lock(key = "fixed", ttl = "100ms", renew = false)]
async fn fixed() -> Result<(), LockError> {
    std::future::pending().await
}

#[test]
fn a_lease_that_is_not_renewed() {
    let error = shape("renew = false", "fixed", fixed()).unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }));
}

#[distributed_lock(key = "kept", min_hold = "50ms", max_hold = "1m 30s")]
async fn kept() -> Result<u32> {
    pause().await;
    Ok(1)
}

#[test]
fn bounds_of_the_time_that_a_lock_is_held() {
    assert_eq!(shape("min_hold and max_hold", "kept", kept()).unwrap(), 1);
}

#[distributed_lock(key = "bounded", min_hold = limits::MIN_HOLD, max_hold = MINUTE, ttl = TTL)]
async fn bounded() -> Result<u32> {
    pause().await;
    Ok(1)
}

#[test]
fn bounds_that_are_constants() {
    let name = "min_hold = limits::MIN_HOLD, max_hold = MINUTE";
    assert_eq!(shape(name, "bounded", bounded()).unwrap(), 1);
}

#[distributed_lock(key = "confirmed", renew = true, release = "confirmed")]
async fn confirmed() -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    pause().await;
    Ok(1)
}

#[test]
fn a_release_that_is_confirmed() {
    let call = confirmed();
    assert_eq!(
        shape("release = \"confirmed\"", "confirmed", call).unwrap(),
        1
    );
}

#[distributed_lock(key = "detached", release = "detached")]
async fn detached() -> Result<u32> {
    pause().await;
    Ok(1)
}

#[test]
fn a_release_that_is_detached() {
    let call = detached();
    assert_eq!(
        shape("release = \"detached\"", "detached", call).unwrap(),
        1
    );
}
