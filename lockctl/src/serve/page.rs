//! The pages and the parts of them that change, as HTML.

use std::fmt::Write as _;
use std::time::SystemTime;

use lock_runtime::inspect::{Grant, Status};
use lock_runtime::{LockError, LockKey};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::duration::{clock, short};
use crate::json;
use crate::log;
use crate::ls;
use crate::revoking::{self, prospects};
use crate::serve::Seen;
use crate::status::{self, holder_row, waiter_row};
use crate::words::{are_held, tame};

/// How many locks a page shows: a browser has to keep up.
const MOST: usize = 500;
/// How many waiters it shows.
const MOST_WAITERS: usize = 200;

/// Makes a text from a store fit to be read on a page.
pub(super) fn escape(text: &str) -> String {
    exact(&tame(text))
}

/// Makes a text fit for a page, where it is sent back as it is.
fn exact(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The holders that are shown, for the form that revokes the lock from them.
fn seen(status: &Status) -> String {
    exact(&json::text(&revoking::seen(status)).unwrap_or_default())
}

/// A value in the query of a link.
fn query(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// A whole page. Its part `live` is replaced by events from `source`.
fn page(title: &str, head: &str, source: &str, live: &str, foot: &str) -> String {
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · lockctl</title>
<link rel="stylesheet" href="/style.css">
<script src="/live.js" defer></script>
</head>
<body>
{head}
<p id="stale" role="status" hidden></p>
<main id="live" data-source="{source}">{live}</main>
{foot}
</body>
</html>
"#
    )
}

/// Drawn by the script, from what happens while the page is open.
const CHART: &str = r#"<figure id="chart" hidden><svg viewBox="0 0 600 80" preserveAspectRatio="none" role="img" aria-labelledby="course"></svg>
<figcaption id="course"></figcaption></figure>"#;

const KEYS: &str = "<p class=\"keys\"><kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> choose <kbd>enter</kbd> open</p>";

pub(super) fn list(search: &str, seen: &Seen, store: &str) -> String {
    let shown = exact(search);
    let head = format!(
        r#"<header><h1>Locks</h1>
<form role="search"><input type="search" name="q" value="{shown}" placeholder="Search keys" aria-label="Search keys"></form></header>"#
    );
    let foot = format!("{CHART}{KEYS}");
    let source = format!("/live/list?q={}", query(search));
    page("Locks", &head, &source, &rows(search, seen, store), &foot)
}

/// The table of locks.
pub(super) fn rows(search: &str, seen: &Seen, store: &str) -> String {
    let mut html = seen.trouble.as_deref().map_or_else(String::new, trouble);
    let all = &seen.overview.locks;
    let locks = all.iter();
    let mut locks: Vec<_> = locks
        .filter(|it| it.key.as_str().contains(search))
        .collect();
    locks.sort_by_key(|it| std::cmp::Reverse(it.waiting));
    let held = locks.iter().filter(|it| ls::is_held(it)).count();
    let waiting = ls::waiting(locks.iter().copied());
    let longest = locks.iter().filter_map(|it| it.longest_wait).max();
    let longest = longest.map_or_else(status::dash, short);
    push(
        &mut html,
        format_args!(
            r#"<p class="totals"><b>{held}</b> held <b>{waiting}</b> waiting <b>{longest}</b> longest wait</p>"#
        ),
    );
    html.push_str(&as_of(store, seen.at));
    if locks.is_empty() {
        let text = match search {
            "" => "No lock is held or waited for.".to_owned(),
            _ => format!(
                "No lock matches `{}` ({}).",
                escape(search),
                are_held(ls::held(all))
            ),
        };
        push(&mut html, format_args!(r#"<p class="none">{text}</p>"#));
        return html;
    }
    html.push_str("<table><thead><tr>");
    for name in ls::HEADING {
        push(&mut html, format_args!("<th>{}</th>", name.to_lowercase()));
    }
    html.push_str("</tr></thead><tbody>");
    for lock in locks.iter().take(MOST) {
        let class = if lock.waiting > 0 { "awaited" } else { "" };
        push(&mut html, format_args!(r#"<tr class="{class}">"#));
        let cells = ls::row(lock);
        let link = query(lock.key.as_str());
        let key = escape(&cells[0]);
        push(
            &mut html,
            format_args!(r#"<td data-name="key"><a href="/lock?key={link}">{key}</a></td>"#),
        );
        push_cells(&mut html, &ls::HEADING[1..], &cells[1..]);
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    if locks.len() > MOST {
        let more = locks.len() - MOST;
        push(
            &mut html,
            format_args!("<p>and {more} more: search for them</p>"),
        );
    }
    html
}

/// Which store this is, and when it was asked.
fn as_of(store: &str, at: SystemTime) -> String {
    let (store, at) = (escape(store), clock(at));
    format!(r#"<p class="as-of">{store}, as of {at}</p>"#)
}

pub(super) fn lock(
    key: &LockKey,
    status: &Result<Status, LockError>,
    history: &[Grant],
    store: &str,
    force: bool,
) -> String {
    let (shown, link) = (escape(key.as_str()), query(key.as_str()));
    let head = format!(r#"<header class="one"><a href="/">← Locks</a><h1>{shown}</h1></header>"#);
    let mut changes =
        r#"<section><h2>Since this page was opened</h2><ol id="history"></ol></section>"#
            .to_owned();
    if !history.is_empty() {
        changes.push_str(r#"<section class="before"><h2>Before</h2>"#);
        table(&mut changes, &log::HEADING, history.iter().map(log::row));
        changes.push_str("</section>");
    }
    let sent = exact(key.as_str());
    // The script shows it when somebody takes the lock.
    let is_free = status.as_ref().is_ok_and(|it| it.holders.is_empty());
    let hidden = if is_free { " hidden" } else { "" };
    let holders = status.as_ref().map(seen).unwrap_or_default();
    let form = if force {
        format!(
            r#"<form class="force" method="post" action="/force"{hidden}>
<input type="hidden" name="key" value="{sent}">
<input type="hidden" name="holders" value="{holders}">
<label>Token <input type="password" name="token" autocomplete="off" required></label>
<button>Revoke this lock</button>
<p>Its holder is notified. Until it stops, its work may overlap with the next holder's.</p>
</form>"#
        )
    } else {
        String::new()
    };
    let source = format!("/live/lock?key={link}");
    page(
        &shown,
        &head,
        &source,
        &details(status, store),
        &format!("{form}{CHART}{changes}"),
    )
}

/// The holders of a lock and its queue.
pub(super) fn details(status: &Result<Status, LockError>, store: &str) -> String {
    let status = match status {
        Ok(status) => status,
        Err(error) => return trouble(&error.to_string()),
    };
    let state = match (status.is_held(), status.is_cooling_down()) {
        (true, _) => "held",
        (false, true) => "cooldown",
        (false, false) => "free",
    };
    let mut html = format!(
        r#"<p class="totals" data-state="{state}" data-holders="{}"><b>{state}</b> <b>{}</b> waiting</p>{}"#,
        seen(status),
        status.waiting,
        as_of(store, SystemTime::now())
    );
    if !status.holders.is_empty() {
        html.push_str("<h2>Holders</h2>");
        table(
            &mut html,
            &status::HOLDER,
            status.holders.iter().map(holder_row),
        );
        html.push_str(r#"<h2>If it is revoked</h2><ul class="prospects">"#);
        for line in prospects(status) {
            push(&mut html, format_args!("<li>{}</li>", escape(&line)));
        }
        html.push_str("</ul>");
    }
    if !status.waiters.is_empty() {
        html.push_str("<h2>Queue</h2>");
        let queue = status.waiters.iter().take(MOST_WAITERS).enumerate();
        table(
            &mut html,
            &status::WAITER,
            queue.map(|(at, it)| waiter_row(at + 1, it)),
        );
    }
    html
}

/// A short page with one message.
pub(super) fn message(title: &str, text: &str) -> String {
    let (title, text) = (escape(title), escape(text));
    page(
        &title,
        &format!("<header><a href=\"/\">← Locks</a><h1>{title}</h1></header>"),
        "",
        &format!("<p>{text}</p>"),
        "",
    )
}

fn trouble(error: &str) -> String {
    format!(r#"<p class="trouble">{}</p>"#, escape(error))
}

fn table(html: &mut String, names: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    html.push_str("<table><thead><tr>");
    for name in names {
        push(html, format_args!("<th>{}</th>", name.to_lowercase()));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        push_cells(html, names, &row);
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
}

/// Each cell knows its name, which narrow pages show beside it.
fn push_cells(html: &mut String, names: &[&str], cells: &[String]) {
    for (name, cell) in names.iter().zip(cells) {
        let (name, cell) = (name.to_lowercase(), escape(cell));
        push(html, format_args!(r#"<td data-name="{name}">{cell}</td>"#));
    }
}

fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a text does not fail.
    let _ = html.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lock_runtime::LockManager;

    use super::*;

    #[tokio::test]
    async fn a_name_is_no_part_of_the_page() {
        let wild = r#"<script>alert('1')</script>" onmouseover="x&y"#;
        let key = LockKey::new(wild).expect("a name");
        let text = "<b>\u{1b}";
        let locks = LockManager::connect("memory:").await.expect("a store");
        let seen = Seen {
            overview: Arc::new(locks.overview("*").await.expect("an overview")),
            at: SystemTime::now(),
            trouble: Some(wild.into()),
        };
        for html in [
            lock(&key, &Err(LockError::ShutDown), &[], wild, true),
            list(wild, &seen, wild),
            message(wild, wild),
        ] {
            assert!(!html.contains("<script>alert"), "{html}");
            assert!(!html.contains("\" onmouseover"), "{html}");
        }
        assert_eq!(escape(text), "&lt;b&gt;\\u{1b}");
        assert_eq!(query("a&b=<\"'"), "a%26b%3D%3C%22%27");
    }
}
