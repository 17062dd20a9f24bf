//! The bounds of settings, and what a configuration shows of itself.

use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn config() -> LockConfig {
    LockConfig::new("memory:").expect("a valid URL")
}

#[test]
fn errors_name_the_setting() {
    let second = Duration::from_secs(1);
    for (setting, config) in [
        ("url", LockConfig::new("http://x")),
        ("prefix", Ok(config().prefix(""))),
        ("prefix", Ok(config().prefix("a{b"))),
        ("prefix", Ok(config().prefix("a\nb"))),
        ("prefix", Ok(config().prefix("x".repeat(129)))),
        ("ttl", Ok(config().ttl(second / 11))),
        ("ttl", Ok(config().ttl(DAY + second))),
        (
            "connect_timeout",
            Ok(config().connect_timeout(Duration::ZERO)),
        ),
        ("pool_size", Ok(config().pool_size(0))),
        ("pool_size", Ok(config().pool_size(65))),
    ] {
        let result = config.and_then(|config| config.validate());
        let text = result.expect_err(setting).to_string();
        assert!(text.starts_with(&format!("invalid {setting}: ")), "{text}");
    }
}

#[test]
fn settings_at_the_ends_of_their_ranges_are_valid() {
    let least = config()
        .prefix("x")
        .ttl(Duration::from_millis(100))
        .pool_size(1);
    let least = least.connect_timeout(Duration::from_nanos(1));
    let most = config().prefix("x".repeat(128)).ttl(DAY).pool_size(64);
    for config in [config(), least, most] {
        config.validate().expect("valid");
    }
}

#[cfg(feature = "redis")]
#[test]
fn no_text_shows_the_password() {
    let config = LockConfig::new("redis://me:hunter2@127.0.0.1:1/3").expect("a valid URL");
    assert!(!format!("{config:?}").contains("hunter2"));
    for url in [
        "http://me:hunter2@x",
        "redis://me:hunter2@h:port/",
        "me:hunter2",
    ] {
        let error = LockConfig::new(url).expect_err("not a valid URL");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
