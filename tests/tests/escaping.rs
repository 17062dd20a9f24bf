//! Promise: distinct values make distinct keys, and no name can move the keys of a lock to different slots.
//!
//! Section: guarantees.md#one-holder-at-a-time
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Debug, Display, Formatter};
use std::hash::Hash;
use std::iter;
use std::panic::{self, AssertUnwindSafe};

use fastrand::Rng;
use lock_runtime::{__private, IntoKey, LockConfig, LockError, LockKey, key};
use tests::{RedisServer, TIME_LIMIT, connect, eventually, within};

/// Whatever has a meaning in a key, what escapes look like, and other text.
const ALPHABET: [char; 16] = [
    ':', '%', '{', '}', '3', 'A', '7', 'B', 'a', ' ', '\n', '\0', '\u{85}', 'é', '雪', '"',
];

fn text(random: &mut Rng, longest: usize) -> String {
    let length = random.usize(..=longest);
    iter::repeat_with(|| ALPHABET[random.usize(..ALPHABET.len())])
        .take(length)
        .collect()
}

/// Fails where two values make one key.
struct Witness<T>(HashMap<LockKey, T>);

impl<T: Clone + Debug + Eq + Hash> Witness<T> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn see(&mut self, values: &T, key: LockKey) {
        let first = self.0.entry(key).or_insert_with(|| values.clone());
        assert_eq!(first, values, "one key for both");
    }
}

/// Every string of up to three of the characters that matter most.
fn short_strings() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..3 {
        let longer = last
            .iter()
            .flat_map(|text| [':', '%', '3', 'A', '}'].map(|c| format!("{text}{c}")));
        last = longer.collect();
        all.extend_from_slice(&last);
    }
    all
}

#[test]
fn all_pairs_of_short_values_make_distinct_keys() {
    let mut plain = Witness::new();
    let mut wrapped = Witness::new();
    for a in &short_strings() {
        for b in &short_strings() {
            plain.see(&(a.clone(), b.clone()), key!("{a}:{b}").unwrap());
            let (x, y) = (__private::value(a), __private::value(b));
            let key = __private::key(format_args!("{{{x}}}:%3A:{y}:")).unwrap();
            wrapped.see(&(a.clone(), b.clone()), key);
        }
    }
}

#[test]
fn random_tuples_make_distinct_keys() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut strings = Witness::new();
    let mut debugged = Witness::new();
    let mut mixed = Witness::new();
    for _ in 0..50_000 {
        let [a, b, c] = [2, 3, 2].map(|longest| text(&mut random, longest));
        strings.see(
            &(a.clone(), b.clone(), c.clone()),
            key!("k:{a}:{b}:x{c}").unwrap(),
        );
        debugged.see(&(a.clone(), b.clone()), key!("{a:?}:{b:?}").unwrap());
        let (number, sign) = (random.u8(..), random.i8(..));
        mixed.see(
            &(number, sign, a.clone()),
            key!("{number:03}:{sign:x}:{a}").unwrap(),
        );
    }
}

#[test]
fn a_key_without_special_characters_reads_as_it_was_written() {
    let (shop, id) = ("berlin", 7);
    assert_eq!(
        key!("stock:{shop}:{id:04}").unwrap().as_str(),
        "stock:berlin:0007"
    );
    assert_eq!(
        key!("stock:{shop}").unwrap(),
        LockKey::new("stock:berlin").unwrap()
    );
    assert_eq!(key!("nightly").unwrap(), LockKey::new("nightly").unwrap());
    let tricky = "50%:{a}\n";
    assert_eq!(key!("{tricky}").unwrap().as_str(), "50%25%3A%7Ba%7D%0A");
    assert_eq!(key!("50%:{{a}}").unwrap().as_str(), "50%25:%7Ba%7D");
    assert_eq!(LockKey::new("50%:{a}").unwrap().as_str(), "50%25:%7Ba%7D");
}

/// Writes a key of its own between two parts of its text; or fails to, and goes on.
struct WritesAKey {
    panics: bool,
}

impl Display for WritesAKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a:")?;
        let inner = Inner {
            panics: self.panics,
        };
        if let Ok(key) = panic::catch_unwind(AssertUnwindSafe(|| key!("x:{inner}").unwrap())) {
            f.write_str(key.as_str())?;
        }
        f.write_str(":d")
    }
}

struct Inner {
    panics: bool,
}

impl Display for Inner {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        assert!(!self.panics, "a value that cannot be formatted");
        f.write_str("b:c")
    }
}

#[test]
fn a_value_that_writes_a_key_is_escaped_to_its_end() {
    let [whole, panicked] = [false, true].map(|panics| WritesAKey { panics });
    assert_eq!(key!("k:{whole}:l").unwrap(), "k:a%3Ax%3Ab%253Ac%3Ad:l");
    assert_eq!(key!("k:{panicked}:l").unwrap(), "k:a%3A%3Ad:l");
}

#[test]
fn an_escaped_name_makes_the_same_key_again() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let (all, text) = ("%{}:ü", text(&mut random, 6));
    let mut names = vec![
        LockKey::new(all).unwrap(),
        key!("{all}").unwrap(),
        key!("{text}:%3A{{}}ü").unwrap(),
    ];
    names.extend(iter::repeat_with(|| name(&mut random)).take(20_000));
    for name in names {
        assert_eq!(LockKey::from_escaped(name.as_str()).unwrap(), name);
        assert_eq!((&name).into_key().unwrap(), name);
    }
}

#[test]
fn only_what_escaping_writes_is_an_escaped_name() {
    let too_long = "x".repeat(1025);
    // Not whole, of a character that stands for itself, in small letters, in half a character.
    for text in [
        "", "%", "a%2", "%2ü", "%41", "%C3%BC", "%7b", "%+5", "%C2", "{", "a}", "a\n", "\u{85}",
        &too_long,
    ] {
        let error = LockKey::from_escaped(text).unwrap_err();
        assert!(matches!(error, LockError::InvalidKey { .. }), "{error}");
    }
}

#[test]
fn whatever_is_text_names_a_lock() {
    let (text, boxed) = (String::from("a%"), Box::<str>::from("a%"));
    let escaped = LockKey::new("a%").unwrap();
    assert_eq!(LockKey::new(&text).unwrap(), escaped);
    assert_eq!(LockKey::new(Cow::Borrowed("a%")).unwrap(), escaped);
    assert_eq!(LockKey::new(&boxed).unwrap(), escaped);
    assert_eq!(LockKey::new(text).unwrap(), escaped);
}

#[test]
fn a_key_is_compared_in_its_escaped_form() {
    let key = LockKey::new("50%").unwrap();
    assert_eq!(key, "50%25");
    assert_eq!(key, *"50%25");
    assert_ne!(key, "50%");
    assert_ne!(key, *"50%");
}

/// What of a key Redis hashes to find its slot, by the rule of its cluster specification: what stands between the
/// first `{` and the first `}` after it, and the whole key where that is missing or empty.
fn hash_tag(key: &str) -> &str {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag)
        .filter(|tag| !tag.is_empty())
        .unwrap_or(key)
}

#[test]
fn the_rule_of_the_cluster_specification() {
    assert_eq!(hash_tag("{user1000}.following"), "user1000");
    assert_eq!(hash_tag("foo{}{bar}"), "foo{}{bar}");
    assert_eq!(hash_tag("foo{{bar}}zap"), "{bar");
    assert_eq!(hash_tag("foo{bar}{zap}"), "bar");
}

/// Names from every way to make one.
fn name(random: &mut Rng) -> LockKey {
    let (a, b) = (text(random, 6), text(random, 6));
    match random.u8(..5) {
        0 => LockKey::new(format!("}}{a}")).unwrap(),
        1 => LockKey::new(format!("{{{a}}}{b}")).unwrap(),
        2 => key!("{a}:{b}.").unwrap(),
        3 => key!("}}{a}:{b}{{").unwrap(),
        _ => key!("{{{a}}}:{b:?}").unwrap(),
    }
}

#[test]
fn no_name_and_no_prefix_moves_the_hash_tag() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    for _ in 0..50_000 {
        let name = name(&mut random);
        assert!(!name.as_str().contains(['{', '}']), "{name}");
        let prefix = text(&mut random, 4);
        let config = LockConfig::new("memory:").unwrap().prefix(&prefix);
        let usable = config.validate().is_ok();
        assert_eq!(usable, is_usable(&prefix), "prefix {prefix:?}");
        if usable {
            for suffix in ["", ":q", ":s"] {
                let key = format!("{prefix}:{{{name}}}{suffix}");
                assert_eq!(hash_tag(&key), name.as_str(), "{key}");
            }
        }
    }
}

fn is_usable(prefix: &str) -> bool {
    !prefix.is_empty() && !prefix.contains(|c: char| c.is_control() || "{}".contains(c))
}

#[tokio::test]
async fn the_keys_on_the_server_have_the_name_for_their_hash_tag() {
    let server = RedisServer::start().await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    for prefix in ["lock", "a b:%é"] {
        let config = LockConfig::new(server.url()).unwrap().prefix(prefix);
        let locks = connect(config).await;
        for _ in 0..20 {
            let name = name(&mut random);
            let guard = locks.lock(name.clone()).acquire();
            let guard = within(TIME_LIMIT, guard).await.unwrap();
            let full = guard.key().clone();
            let waiter = tokio::spawn(locks.lock(name.clone()).acquire());
            let owner = format!("{prefix}:{{{full}}}");
            let expected =
                [&owner, &format!("{owner}:q"), &format!("{owner}:s")].map(String::clone);
            let keys = async || {
                let mut keys = server.keys("*").await;
                keys.retain(|key| !key.ends_with(":fence"));
                keys
            };
            eventually(TIME_LIMIT, async || keys().await.len() == 3).await;
            let keys = keys().await;
            assert_eq!(keys, expected);
            assert!(keys.iter().all(|key| hash_tag(key) == full.as_str()));
            guard.release();
            let next = within(TIME_LIMIT, waiter).await.unwrap().unwrap();
            assert!(next.release_confirmed().await.unwrap());
        }
        assert_eq!(server.keys("*{*").await, [""; 0]);
    }
}
