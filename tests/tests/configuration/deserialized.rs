//! A configuration that is a part of a program's own.

use lock_runtime::LockConfig;
use std::time::Duration;

fn same(json: &str, config: &LockConfig) {
    let read: LockConfig = serde_json::from_str(json).unwrap();
    assert_eq!(format!("{read:?}"), format!("{config:?}"));
}

#[test]
fn a_text_is_a_url() {
    same(
        r#""memory:shop?ttl=20s""#,
        &crate::config("memory:shop?ttl=20s"),
    );
}

#[test]
fn a_map_has_a_url_and_settings_that_go_before_it() {
    let config = crate::config("memory:shop")
        .ttl(Duration::from_secs(90))
        .wait_forever()
        .pool_size(2)
        .lazy();
    let settings = r#""ttl": "1m 30s", "wait": "forever", "pool_size": 2, "lazy": true"#;
    same(
        &format!(r#"{{ {settings}, "url": "memory:shop?ttl=20s" }}"#),
        &config,
    );
}

#[test]
fn an_error_names_the_setting_and_shows_no_password() {
    for (json, says) in [
        (r#"{ "ttl": "10s" }"#, "`url`"),
        (
            r#"{ "url": "memory:", "tttl": "10s" }"#,
            "no setting `tttl`",
        ),
        (r#"{ "url": "memory:", "ttl": 10 }"#, "invalid ttl: `10`"),
        (
            r#"{ "url": "memory:", "pool_size": -1 }"#,
            "invalid pool_size: `-1`",
        ),
        (r#""redis://me:hunter2@h:port""#, "invalid url: "),
        ("7", "a URL, or a map"),
    ] {
        let error = serde_json::from_str::<LockConfig>(json).expect_err(json);
        let text = error.to_string();
        assert!(text.contains(says) && !text.contains("hunter2"), "{text}");
    }
}
