//! What servers have agreed on, read from their transaction logs.
//!
//! Source: `FileTxnLog` of the server, and the records of `zookeeper.jute`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use super::ZooKeeperServer;

/// How a log begins: a mark, a version, and the number of a database.
const MARK: &[u8] = b"ZKLG";
const HEADER: usize = 16;
/// The end of a transaction; where a server was killed while it wrote one, zeros are there instead.
const END: u8 = b'B';

/// The part of a number that counts; the other one is the epoch.
const COUNTER: u64 = 0xffff_ffff;

/// The types of transactions that concern nodes.
const CREATE: i32 = 1;
const DELETE: i32 = 2;
const MULTI: i32 = 14;
const CREATE_2: i32 = 15;
const CREATE_CONTAINER: i32 = 19;
const DELETE_CONTAINER: i32 = 20;
const CREATE_TTL: i32 = 21;
const CLOSE_SESSION: i32 = -11;
const FAILED: i32 = -1;

/// What a transaction did to a node.
#[derive(Debug)]
pub struct Change {
    /// The number of the transaction.
    pub at: u64,
    /// The path of the node.
    pub node: String,
    /// Its first data; `None` if it was deleted, or ended with its session.
    pub created: Option<String>,
}

/// What servers have done, as far as their logs tell it.
#[derive(Debug)]
pub struct History {
    /// What became of all nodes, in the servers' order.
    pub changes: Vec<Change>,
    /// The numbers of the transactions that these come from.
    logged: BTreeSet<u64>,
    /// The numbers of the last transactions in the servers' snapshots.
    saved: BTreeSet<u64>,
}

impl History {
    fn new(transactions: BTreeMap<u64, Transaction>, saved: BTreeSet<u64>) -> Self {
        Self {
            logged: transactions.keys().copied().collect(),
            changes: changes(transactions),
            saved,
        }
    }

    /// The first transaction that the logs do not have, although one behind it was carried out: they have that one, or a
    /// snapshot has, or clients have `seen` it. The numbers of an epoch begin at 1, and none is left out.
    ///
    /// A server that joins a new leader may get transactions in a snapshot alone, and may cut off the end of its log and
    /// keep the data.
    pub fn missing(&self, seen: impl IntoIterator<Item = u64>) -> Option<u64> {
        let mut done = &self.logged | &self.saved;
        done.extend(seen);
        let mut next = 1;
        for at in done.into_iter().filter(|at| at & COUNTER > 0) {
            if at & !COUNTER != next & !COUNTER {
                next = (at & !COUNTER) + 1;
            }
            if at > next || !self.logged.contains(&at) {
                return Some(next);
            }
            next = at + 1;
        }
        None
    }
}

/// A transaction.
#[derive(Debug)]
struct Transaction {
    session: u64,
    closes: bool,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Created {
        node: String,
        data: String,
        is_ephemeral: bool,
    },
    Deleted(String),
}

impl ZooKeeperServer {
    /// What became of all nodes, in the server's order.
    pub fn history(&self) -> History {
        History::new(self.transactions(), self.saved().collect())
    }

    fn transactions(&self) -> BTreeMap<u64, Transaction> {
        let mut all = BTreeMap::new();
        for (file, _) in self.files("log.") {
            read(&fs::read(file).expect("a log"), &mut all);
        }
        all
    }

    /// The numbers of the last transactions in its snapshots.
    fn saved(&self) -> impl Iterator<Item = u64> {
        self.files("snapshot.").map(|(_, number)| number)
    }

    /// Its files of a kind, with the numbers in their names.
    fn files(&self, kind: &str) -> impl Iterator<Item = (PathBuf, u64)> {
        let folder = self.directory.path().join("data/version-2");
        fs::read_dir(folder)
            .expect("its data")
            .filter_map(move |file| {
                let file = file.expect("a file").path();
                let number = file.file_name()?.to_str()?.strip_prefix(kind)?;
                let number = u64::from_str_radix(number, 16).ok()?;
                Some((file, number))
            })
    }
}

/// What became of all nodes by the logs of three servers: a transaction that two of them have was agreed on. What a leader
/// had alone when it was cut off may stay in its log.
pub(super) fn agreed(servers: &[ZooKeeperServer]) -> History {
    let logs = servers.iter().map(ZooKeeperServer::transactions);
    let (mut seen, mut agreed) = (BTreeSet::new(), BTreeMap::new());
    for (at, transaction) in logs.flatten() {
        if !seen.insert(at) {
            agreed.insert(at, transaction);
        }
    }
    let saved = servers.iter().flat_map(ZooKeeperServer::saved).collect();
    History::new(agreed, saved)
}

/// Resolves which nodes end with a session.
fn changes(transactions: BTreeMap<u64, Transaction>) -> Vec<Change> {
    let mut changes = Vec::new();
    // Nodes and their sessions.
    let mut ephemeral: BTreeMap<String, u64> = BTreeMap::new();
    for (at, transaction) in transactions {
        let mut deleted = Vec::new();
        for step in transaction.steps {
            match step {
                Step::Created {
                    node,
                    data,
                    is_ephemeral,
                } => {
                    if is_ephemeral {
                        ephemeral.insert(node.clone(), transaction.session);
                    }
                    let created = Some(data);
                    changes.push(Change { at, node, created });
                }
                Step::Deleted(node) => deleted.push(node),
            }
        }
        if transaction.closes {
            let own = ephemeral.iter();
            let own = own.filter(|(_, session)| **session == transaction.session);
            deleted.extend(own.map(|(node, _)| node.clone()));
        }
        for node in deleted {
            ephemeral.remove(&node);
            let created = None;
            changes.push(Change { at, node, created });
        }
    }
    changes
}

/// Reads the transactions of a log.
fn read(log: &[u8], all: &mut BTreeMap<u64, Transaction>) {
    assert!(log.is_empty() || log.starts_with(MARK), "no log");
    let mut rest = Record(log.get(HEADER..).unwrap_or_default());
    while let Some((at, transaction)) = rest.transaction() {
        all.insert(at, transaction);
    }
}

/// Fields in the order in which they were written.
struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn int(&mut self) -> Option<i32> {
        let bytes = self.bytes(4)?.try_into().ok()?;
        Some(i32::from_be_bytes(bytes))
    }

    fn long(&mut self) -> Option<u64> {
        let bytes = self.bytes(8)?.try_into().ok()?;
        Some(u64::from_be_bytes(bytes))
    }

    fn buffer(&mut self) -> Option<&'a [u8]> {
        // A missing one has the length -1.
        let length = usize::try_from(self.int()?).unwrap_or(0);
        self.bytes(length)
    }

    fn text(&mut self) -> Option<String> {
        let bytes = self.buffer()?.to_vec();
        String::from_utf8(bytes).ok()
    }

    /// The next transaction of a log with its number; `None` at the end of what was written whole.
    fn transaction(&mut self) -> Option<(u64, Transaction)> {
        let _checksum = self.long()?;
        let mut record = Record(self.buffer()?);
        if self.bytes(1)? != [END] {
            return None;
        }
        let session = record.long()?;
        let _number_of_request = record.int()?;
        let at = record.long()?;
        let _time = record.long()?;
        let kind = record.int()?;
        let mut steps = Vec::new();
        if kind == MULTI {
            let mut failed = false;
            for _ in 0..record.int()? {
                let kind = record.int()?;
                failed |= kind == FAILED;
                steps.extend(Record(record.buffer()?).step(kind));
            }
            // The others of a transaction that failed stand there, and were not done.
            if failed {
                steps.clear();
            }
        } else {
            steps.extend(record.step(kind));
        }
        let transaction = Transaction {
            session,
            closes: kind == CLOSE_SESSION,
            steps,
        };
        Some((at, transaction))
    }

    /// What a transaction of this type did, if it concerns nodes and their existence.
    fn step(&mut self, kind: i32) -> Option<Step> {
        match kind {
            CREATE | CREATE_2 | CREATE_CONTAINER | CREATE_TTL => {
                let node = self.text()?;
                let data = String::from_utf8_lossy(self.buffer()?).into_owned();
                for _ in 0..self.int()? {
                    // A right of whom.
                    self.int()?;
                    self.buffer()?;
                    self.buffer()?;
                }
                let is_ephemeral = matches!(kind, CREATE | CREATE_2) && self.bytes(1)? == [1];
                Some(Step::Created {
                    node,
                    data,
                    is_ephemeral,
                })
            }
            DELETE | DELETE_CONTAINER => Some(Step::Deleted(self.text()?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        let length = i32::try_from(text.len()).expect("a short text");
        [&length.to_be_bytes()[..], text.as_bytes()].concat()
    }

    fn created(node: &str) -> Vec<u8> {
        let (no_rights, ephemeral, version) = ([0; 4], [1], [0; 4]);
        [
            &text(node)[..],
            &text("data"),
            &no_rights,
            &ephemeral,
            &version,
        ]
        .concat()
    }

    fn multi(parts: &[(i32, Vec<u8>)]) -> Vec<u8> {
        let count = i32::try_from(parts.len()).expect("few parts");
        let mut bytes = count.to_be_bytes().to_vec();
        for (kind, part) in parts {
            let length = i32::try_from(part.len()).expect("a short part");
            bytes.extend([kind.to_be_bytes(), length.to_be_bytes()].concat());
            bytes.extend(part);
        }
        bytes
    }

    /// A log of transactions, each with its session, its number and its type.
    fn log(transactions: &[(u64, u64, i32, Vec<u8>)]) -> Vec<u8> {
        let mut log = [MARK, &[0; HEADER - MARK.len()]].concat();
        for (session, at, kind, body) in transactions {
            let mut record = session.to_be_bytes().to_vec();
            record.extend([0; 4]);
            record.extend(at.to_be_bytes());
            record.extend([0; 8]);
            record.extend(kind.to_be_bytes());
            record.extend(body);
            let length = i32::try_from(record.len()).expect("a short record");
            log.extend([0; 8]);
            log.extend(length.to_be_bytes());
            log.extend(record);
            log.push(END);
        }
        // Space that the server has set aside.
        log.extend([0; 100]);
        log
    }

    fn changes_of(transactions: &[(u64, u64, i32, Vec<u8>)]) -> Vec<(u64, String, bool)> {
        let mut all = BTreeMap::new();
        read(&log(transactions), &mut all);
        let changes = changes(all).into_iter();
        changes
            .map(|it| (it.at, it.node, it.created.is_some()))
            .collect()
    }

    #[test]
    fn what_was_done_and_is_in_no_log_is_noticed() {
        let epoch = |epoch: u64, count: u64| (1..=count).map(move |at| (epoch << 32) + at);
        let history = |logged: &[u64], saved: &[u64]| History {
            changes: Vec::new(),
            logged: logged.iter().copied().collect(),
            saved: saved.iter().copied().collect(),
        };
        let logged: Vec<_> = epoch(1, 4).chain(epoch(3, 2)).collect();
        let (first, third) = (1 << 32, 3 << 32);
        let whole = history(&logged, &[0, first, first + 4, third]);
        assert_eq!(whole.missing([first + 2]), None);
        assert_eq!(whole.missing([first + 7, third + 9]), Some(first + 5));
        assert_eq!(history(&logged, &[third + 3]).missing([]), Some(third + 3));
        let holed = [&logged[..2], &logged[3..]].concat();
        assert_eq!(history(&holed, &[]).missing([]), Some(first + 3));
        assert_eq!(history(&logged[1..], &[]).missing([]), Some(first + 1));
    }

    #[test]
    fn nodes_end_by_a_deletion_or_with_their_session_and_not_by_a_transaction_that_failed() {
        let changes = changes_of(&[
            (1, 1, CREATE_2, created("/a")),
            (
                2,
                2,
                MULTI,
                multi(&[(CREATE_2, created("/b")), (DELETE, text("/a"))]),
            ),
            (
                1,
                3,
                MULTI,
                multi(&[(DELETE, text("/b")), (FAILED, vec![0; 4])]),
            ),
            (1, 4, CREATE, created("/c")),
            (1, 5, CLOSE_SESSION, Vec::new()),
        ]);
        let expected = [
            (1, "/a", true),
            (2, "/b", true),
            (2, "/a", false),
            (4, "/c", true),
            (5, "/c", false),
        ];
        assert_eq!(
            changes,
            expected.map(|(at, node, is)| (at, node.to_owned(), is))
        );
    }
}
