//! The paths of the nodes of locks and sessions, and the encoding of names in them.

use std::fmt::Write as _;

use super::connect::Identity;
use super::op::{Mode, Op};
use crate::types::key::LockKey;

/// The paths of one manager. Its locks are `/{chroot}/{prefix}/{name}`, its sessions
/// `/{chroot}/{prefix}.sessions/{id}`.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    chroot: String,
    root: String,
    sessions: String,
}

impl Paths {
    /// `chroot` is empty, or begins with a `/`.
    pub(crate) fn new(chroot: &str, prefix: &str) -> Self {
        let prefix = escaped(prefix);
        let slash = if prefix.is_empty() { "" } else { "/" };
        let root = format!("{chroot}{slash}{prefix}");
        Self {
            chroot: chroot.to_owned(),
            sessions: format!("{chroot}/{prefix}.sessions"),
            root,
        }
    }

    /// The node whose children are all locks.
    pub(crate) fn root(&self) -> &str {
        if self.root.is_empty() {
            "/"
        } else {
            &self.root
        }
    }

    /// The node whose children hold a lock, or wait for it.
    pub(crate) fn lock(&self, key: &LockKey) -> String {
        format!("{}/{}", self.root, escaped(key.as_str()))
    }

    /// The node that heartbeats are written to.
    pub(crate) fn session(&self, session: &Identity) -> String {
        format!("{}/{:016x}", self.sessions, session.id)
    }

    /// Creates the nodes above a lock, unless they exist.
    pub(crate) fn above_lock(&self, key: &LockKey) -> Vec<Op> {
        let mut ops = self.above(&self.root);
        ops.push(container(self.lock(key)));
        ops
    }

    /// Creates the nodes above those of sessions, unless they exist.
    pub(crate) fn above_session(&self) -> Vec<Op> {
        self.above(&self.sessions)
    }

    fn above(&self, path: &str) -> Vec<Op> {
        let ends = self.chroot.match_indices('/').skip(1).map(|(at, _)| at);
        let ends = ends.chain([self.chroot.len()]).filter(|end| *end > 0);
        let chroots = ends.map(|end| Op::Create {
            path: self.chroot[..end].to_owned(),
            data: Vec::new(),
            mode: Mode::Persistent,
        });
        let below = (path.len() > self.chroot.len()).then(|| container(path.to_owned()));
        chroots.chain(below).collect()
    }
}

fn container(path: String) -> Op {
    Op::Create {
        path,
        data: Vec::new(),
        mode: Mode::Container,
    }
}

/// Characters that the name of a node must not contain: `.` and `..` are no names, a `/` separates
/// them, and ZooKeeper refuses some characters that UTF-16 writes as two or that are
/// private.
fn is_special(c: char) -> bool {
    matches!(c, '/' | '.' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}' | '\u{10000}'..)
}

/// The name of a node for a lock or a prefix.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if is_special(c) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing into a text does not fail.
                let _ = write!(text, "%{byte:02X}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// The lock that a node is named after; `None` if it is none of ours.
pub(crate) fn key(node: &str) -> Option<LockKey> {
    let mut name = String::with_capacity(node.len());
    let mut rest = node;
    while let Some(c) = rest.chars().next() {
        // A `%` of the lock's own name is followed by other characters.
        let (c, length) = special(rest).unwrap_or((c, c.len_utf8()));
        name.push(c);
        rest = rest.get(length..)?;
    }
    let key = LockKey::unchecked(&name);
    (escaped(key.as_str()) == node).then_some(key)
}

/// The special character that a text begins with, and how many bytes it is written in.
fn special(text: &str) -> Option<(char, usize)> {
    let written = text.strip_prefix('%')?.split('%').take(4);
    let bytes = written.map_while(|it| u8::from_str_radix(it.get(..2)?, 16).ok());
    let bytes: Vec<u8> = bytes.collect();
    (1..=bytes.len()).find_map(|length| {
        let c = std::str::from_utf8(&bytes[..length]).ok()?.chars().next()?;
        is_special(c).then_some((c, 3 * length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_node_and_is_read_again() {
        for (name, node) in [
            ("nightly", "nightly"),
            ("a/b", "a%2Fb"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("50%", "50%25"),
            ("%2E", "%252E"),
            ("größe:7", "größe:7"),
            ("😀", "%F0%9F%98%80"),
            ("\u{e000}\u{ffff}", "%EE%80%80%EF%BF%BF"),
            ("\u{1}\u{80}", "%01%C2%80"),
        ] {
            let lock = LockKey::of(name);
            assert_eq!(escaped(lock.as_str()), node);
            assert_eq!(key(node), Some(lock), "{node}");
        }
        for foreign in [".sessions", "shop.sessions", "%2f"] {
            assert_eq!(key(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn locks_and_sessions_stand_beside_each_other() {
        let paths = Paths::new("/a/b", "lock");
        assert_eq!(paths.lock(&LockKey::of("k.1")), "/a/b/lock/k%2E1");
        let made: Vec<_> = paths.above_lock(&LockKey::of("k")).into_iter().collect();
        let path = |op: &Op| match op {
            Op::Create { path, .. } => path.clone(),
            other => format!("{other:?}"),
        };
        let made: Vec<_> = made.iter().map(path).collect();
        assert_eq!(made, ["/a", "/a/b", "/a/b/lock", "/a/b/lock/k"]);
        let made: Vec<_> = paths.above_session().iter().map(path).collect();
        assert_eq!(made, ["/a", "/a/b", "/a/b/lock.sessions"]);

        let bare = Paths::new("", "");
        assert_eq!((bare.root(), &*bare.sessions), ("/", "/.sessions"));
        assert_eq!(bare.lock(&LockKey::of("k")), "/k");
        assert_eq!(bare.above_lock(&LockKey::of("k")).len(), 1);
    }
}
