//! Which node of a cluster serves which slot, as its nodes say, and how a slot moves to another one.

use std::time::Duration;

use tokio::time::timeout;

use super::{ClusterFleet, RedisServer};

/// How many slots there are.
pub(super) const SLOTS: u16 = 16_384;

/// How long a node may take to answer, before another one is asked.
const ANSWER: Duration = Duration::from_millis(500);

/// A node as another one knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) number: usize,
    /// The number of its master, where it follows one.
    pub(super) master: Option<usize>,
    /// Whether it is believed to be down, or has been met and not heard of yet.
    pub(super) absent: bool,
    /// The first and the last of each range that it serves.
    pub(super) slots: Vec<(u16, u16)>,
}

impl Member {
    /// A line of `CLUSTER NODES`.
    fn parse(line: &str) -> Self {
        let words: Vec<_> = line.split(' ').collect();
        let [id, _, flags, master, _, _, _, _, slots @ ..] = &words[..] else {
            panic!("no node: {line}");
        };
        let absent = |it| ["fail", "fail?", "handshake", "noaddr"].contains(&it);
        Self {
            number: number(id),
            master: (*master != "-").then(|| number(master)),
            absent: flags.split(',').any(absent),
            // A slot that is on the move stands in brackets, beside its range.
            slots: slots.iter().filter_map(|it| range(it)).collect(),
        }
    }

    fn serves(&self, slot: u16) -> bool {
        self.slots
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&slot))
    }
}

fn range(words: &str) -> Option<(u16, u16)> {
    let (first, last) = words.split_once('-').unwrap_or((words, words));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// The name of a node for the others.
pub(super) fn id(number: usize) -> String {
    format!("{:040x}", number + 1)
}

fn number(id: &str) -> usize {
    // A node that was met has a name of chance until it is heard of.
    usize::from_str_radix(id, 16).map_or(usize::MAX, |number| number - 1)
}

/// What a node knows of all, by number.
pub(super) async fn known_to(node: &RedisServer) -> Option<Vec<Member>> {
    let said = timeout(ANSWER, node.try_cmd(&["CLUSTER", "NODES"])).await;
    let said: String = redis::from_redis_value(said.ok()?.ok()?).ok()?;
    let mut members: Vec<_> = said.lines().map(Member::parse).collect();
    members.sort_by_key(|it| it.number);
    Some(members)
}

impl ClusterFleet {
    /// What the first living node that has not been removed knows of all.
    pub(super) async fn members(&self) -> Vec<Member> {
        for node in self.nodes() {
            match known_to(node).await {
                Some(members) if members.len() > 1 => return members,
                _ => {}
            }
        }
        panic!("no node answers");
    }

    /// The slot of a key.
    pub async fn slot_of(&self, key: &str) -> u16 {
        for node in self.nodes() {
            let said = timeout(ANSWER, node.try_cmd(&["CLUSTER", "KEYSLOT", key])).await;
            if let Ok(Ok(slot)) = said {
                return redis::from_redis_value(slot).expect("a slot");
            }
        }
        panic!("no node answers");
    }

    /// The node that serves a slot.
    pub async fn owner(&self, slot: u16) -> usize {
        let members = self.members().await;
        let owner = members.iter().find(|it| it.serves(slot));
        owner
            .unwrap_or_else(|| panic!("nobody serves slot {slot}"))
            .number
    }

    /// Moves a slot with its keys to another master, and tells all masters.
    pub async fn move_slot(&self, slot: u16, to: usize) {
        let from = self.begin_move(slot, to).await;
        self.move_keys(slot, from, to).await;
        self.end_move(slot, from, to).await;
    }

    /// Begins to move a slot; the node that it leaves. From now on that one sends those who ask for a key that it has
    /// not, or has no longer, to the other.
    pub async fn begin_move(&self, slot: u16, to: usize) -> usize {
        let from = self.owner(slot).await;
        assert_ne!(from, to, "the slot is there");
        let word = slot.to_string();
        let importing = ["CLUSTER", "SETSLOT", &word, "IMPORTING", &id(from)];
        self.nodes()[to].cmd(&importing).await;
        let migrating = ["CLUSTER", "SETSLOT", &word, "MIGRATING", &id(to)];
        self.nodes()[from].cmd(&migrating).await;
        from
    }

    /// Moves those keys of a moving slot that are there now; how many.
    pub async fn move_keys(&self, slot: u16, from: usize, to: usize) -> usize {
        let (source, port) = (&self.nodes()[from], self.nodes()[to].port().to_string());
        let mut moved = 0;
        loop {
            let some = ["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "100"];
            let keys: Vec<String> = source.read(&some).await;
            if keys.is_empty() {
                return moved;
            }
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            words.extend(keys.iter().map(String::as_str));
            source.cmd(&words).await;
            moved += keys.len();
        }
    }

    /// Ends the move: the new node first, so that nobody is sent to one that refuses.
    pub async fn end_move(&self, slot: u16, from: usize, to: usize) {
        let (word, id) = (slot.to_string(), id(to));
        let others = self.members().await;
        let others = others.iter().filter(|it| it.master.is_none() && !it.absent);
        let others = others
            .map(|it| it.number)
            .filter(|it| ![from, to].contains(it));
        for node in [to, from].into_iter().chain(others) {
            let assign = ["CLUSTER", "SETSLOT", &word, "NODE", &id];
            let assigned = self.nodes()[node].try_cmd(&assign).await;
            // One that has handed over, or has heard that its last slot is gone, is a replica.
            if self.nodes()[node].is_master().await {
                assigned.unwrap_or_else(|error| panic!("{assign:?}: {error}"));
            }
        }
    }
}
