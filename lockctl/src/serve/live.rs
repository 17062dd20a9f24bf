//! What changes on the pages, as server-sent events.

use std::convert::Infallible;

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt as _, stream};
use lock_runtime::LockKey;
use lock_runtime::inspect::{Change, ChangeKind};
use serde::Serialize;

use crate::ls;
use crate::serve::{One, Refused, Search, Seen, Site, named, page};
use crate::status::whereabouts;
use crate::words::tame;

type Events = Sse<
    axum::response::sse::KeepAliveStream<stream::BoxStream<'static, Result<Event, Infallible>>>,
>;

/// An entry of a lock's history.
#[derive(Debug, Serialize)]
struct Entry {
    event: ChangeKind,
    who: String,
}

/// A point of the chart.
#[derive(Debug, Serialize)]
struct Point {
    waiting: usize,
    hand_overs: usize,
}

/// The table of locks, whenever somebody has looked.
pub(super) async fn list(State(site): State<Site>, Query(search): Query<Search>) -> Events {
    events(looks(site).map(move |(site, seen, before)| {
        let matching = |key: &LockKey| key.as_str().contains(&search.q);
        let point = point(&seen, &before, matching);
        let part = part(&page::rows(&search.q, &seen, &site.store));
        point.into_iter().chain([part]).collect()
    }))
}

/// One lock with its queue, and what has happened to it.
pub(super) async fn lock(
    State(site): State<Site>,
    Query(one): Query<One>,
) -> Result<Events, Refused> {
    let key = named(&one.key)?;
    Ok(events(looks(site).then(move |(site, seen, before)| {
        let key = key.clone();
        async move {
            let mut events = history(&key, &seen, &before);
            events.extend(point(&seen, &before, |it| *it == key));
            events.push(match site.status(&key).await {
                // What is shown stays.
                Err(error) => trouble(&error.to_string()),
                status => part(&page::details(&status, &site.store)),
            });
            events
        }
    })))
}

/// Each look from now on, with the one before it.
fn looks(site: Site) -> impl Stream<Item = (Site, Seen, Seen)> {
    let mut seen = site.seen.clone();
    let first = seen.borrow_and_update().clone();
    stream::unfold((site, seen, first), async |(site, mut seen, before)| {
        seen.changed().await.ok()?;
        let now = seen.borrow_and_update().clone();
        let look = (site.clone(), now.clone(), before.clone());
        Some((look, (site, seen, now)))
    })
}

fn events(looks: impl Stream<Item = Vec<Event>> + Send + 'static) -> Events {
    let events = looks.flat_map(|events| stream::iter(events.into_iter().map(Ok)));
    Sse::new(events.boxed()).keep_alive(KeepAlive::default())
}

fn part(html: &str) -> Event {
    Event::default().event("part").data(html)
}

fn trouble(why: &str) -> Event {
    let why = format!("{}.", tame(why));
    Event::default().event("trouble").data(why)
}

fn history(key: &LockKey, seen: &Seen, before: &Seen) -> Vec<Event> {
    changes(seen, before)
        .filter(|it| it.key == *key)
        .filter_map(|it| entry(&it))
        .collect()
}

/// What has happened between two looks. What has happened while nobody could look shows with the next look.
fn changes(seen: &Seen, before: &Seen) -> impl Iterator<Item = Change> {
    seen.overview.changes_since(&before.overview).into_iter()
}

/// How many wait, and how many hand-overs there were since the look before: the next point of the chart.
fn point(seen: &Seen, before: &Seen, matching: impl Fn(&LockKey) -> bool) -> Option<Event> {
    if seen.trouble.is_some() {
        return None;
    }
    let locks = seen.overview.locks.iter().filter(|it| matching(&it.key));
    let handed =
        changes(seen, before).filter(|it| it.kind == ChangeKind::HandedOver && matching(&it.key));
    let point = Point {
        waiting: ls::waiting(locks),
        hand_overs: handed.count(),
    };
    let json = serde_json::to_string(&point).ok()?;
    Some(Event::default().event("point").data(json))
}

fn entry(change: &Change) -> Option<Event> {
    let holder = &change.holder;
    let process = whereabouts(holder.process, holder.host.as_deref(), &holder.id);
    let function = tame(holder.function.as_deref().unwrap_or_default()).into_owned();
    let entry = Entry {
        event: change.kind,
        who: format!("{process} {function}"),
    };
    let json = serde_json::to_string(&entry).ok()?;
    Some(Event::default().event("change").data(json))
}
