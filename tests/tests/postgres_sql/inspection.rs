//! What the functions tell of locks, and locks that are taken away.

use crate::{
    installed,
    peer::{Peer, Wanted, uuid},
};

fn name(token: u128) -> String {
    format!("{token:032x} 1@host tests::body")
}

/// The columns of a row as text, empty if null.
fn texts(row: &[Option<String>]) -> Vec<&str> {
    row.iter()
        .map(|it| it.as_deref().unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn the_status_names_holders_and_living_waiters() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut dead) = (Peer::new(&home).await, Peer::new(&home).await);
    let (me, lock) = (uuid(peer.session), "lock:{a}");
    let nobody = peer.call(&format!("status('{lock}', {me})")).await;
    assert_eq!(nobody.len(), 1);
    assert_eq!(texts(&nobody[0])[..4], ["queue", "", "", "0"]);
    let fence = peer.take(lock, 1).await;
    let place = peer.wait(lock, 2).await.place;
    dead.wait(lock, 3).await;
    peer.acquire(&Wanted {
        kind: "r",
        ..Wanted::new(lock, 4)
    })
    .await;
    let bell = format!(
        "SELECT pg_advisory_unlock_all(), {}.bell({})",
        home.schema(),
        uuid(dead.session)
    );
    dead.sql.rows(&bell).await;
    let rows = peer.call(&format!("status('{lock}', {me})")).await;
    let rows: Vec<_> = rows.iter().map(|row| texts(row)).collect();
    assert_eq!(rows[0][..4], ["queue", "", "", "2"]);
    assert_eq!(rows[1][..4], ["holder", "x", &name(1), &fence.to_string()]);
    assert_eq!(rows[2][..4], ["waiter", "x", &name(2), &place.to_string()]);
    assert_eq!(rows[3][..3], ["waiter", "r", &name(4)]);
    assert_eq!(rows.len(), 4);
    for (row, column) in [(1, 4), (1, 5), (2, 4)] {
        let number: i64 = rows[row][column].parse().unwrap();
        assert!((0..=60_000_000).contains(&number), "{rows:?}");
    }
}

#[tokio::test]
async fn locks_are_listed_by_pattern_in_pages() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    for name in ["a", "b:1", "b:2", "b_1", "b%3A", "c"] {
        peer.take(&format!("lock:{{{name}}}"), 1).await;
    }
    peer.release("lock:{c}", 1).await;
    peer.release_with("lock:{a}", 1, 60_000, false, 0).await;
    for (glob, after, most, found) in [
        ("lock:{*}", "", 10, vec!["a", "b%3A", "b:1", "b:2", "b_1"]),
        ("lock:{*}", "lock:{b%3A}", 2, vec!["b:1", "b:2"]),
        ("lock:{b:?}", "", 10, vec!["b:1", "b:2"]),
        ("lock:{b_1}", "", 10, vec!["b_1"]),
        ("lock:{b%}", "", 10, vec![]),
        ("other:{*}", "", 10, vec![]),
    ] {
        let rows = peer
            .call(&format!("list('{glob}', '{after}', {most})"))
            .await;
        let names: Vec<_> = rows.iter().map(|row| texts(row)[0].to_owned()).collect();
        let found: Vec<_> = found
            .iter()
            .map(|name| format!("lock:{{{name}}}"))
            .collect();
        assert_eq!(names, found, "{glob}");
    }
}

#[tokio::test]
async fn an_overview_has_the_basic_facts_of_locks_that_are_held_or_waited_for() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    peer.take("lock:{a}", 1).await;
    peer.wait("lock:{a}", 2).await;
    for token in 1..=3 {
        peer.acquire(&Wanted {
            kind: "r",
            ..Wanted::new("lock:{b}", token)
        })
        .await;
    }
    peer.take("lock:{c}", 1).await;
    peer.release_with("lock:{c}", 1, 60_000, false, 0).await;
    peer.take("lock:{d}", 1).await;
    peer.release("lock:{d}", 1).await;
    let rows = peer.call("overview('lock:{*}', '', 10, 2)").await;
    let facts: Vec<_> = rows
        .iter()
        .map(|row| (texts(row)[..4].to_vec(), texts(row)[5]))
        .collect();
    assert_eq!(
        facts,
        [
            (vec!["lock:{a}", "x", "1", "1"], name(1).as_str()),
            (vec!["lock:{b}", "r", "3", "0"], &name(1)),
            (vec!["lock:{b}", "r", "3", "0"], &name(2)),
            (vec!["lock:{c}", "", "1", "0"], &format!("-{}", name(1))),
        ]
    );
    let page = peer.call("overview('lock:{*}', 'lock:{a}', 1, 0)").await;
    assert_eq!(
        texts(&page[0]),
        ["lock:{b}", "r", "3", "0", "", "", "", "", ""]
    );
    assert_eq!(page.len(), 1);
}

#[tokio::test]
async fn a_lock_is_taken_away_and_handed_on() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut other) = (Peer::new(&home).await, Peer::pooled(&home).await);
    let lock = "lock:{a}";
    assert_eq!(peer.force(lock).await, 0);
    peer.take(lock, 1).await;
    peer.wait(lock, 2).await;
    assert_eq!(other.force(lock).await, 1);
    assert!(!peer.renew(lock, 1, 60_000).await);
    assert!(peer.standing(lock, 2).await > 0);
    peer.release(lock, 2).await;
    for token in 3..6 {
        peer.acquire(&Wanted {
            kind: "p5",
            ..Wanted::new(lock, token)
        })
        .await;
    }
    peer.release_with(lock, 3, 60_000, false, 0).await;
    assert_eq!(other.force(lock).await, 3);
    peer.take(lock, 7).await;
}
