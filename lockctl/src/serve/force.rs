//! Revokes a lock for a user who knows the token.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use lock_runtime::inspect::Status;
use lock_runtime::{LockError, LockKey};
use serde::Deserialize;

use crate::duration::clock;
use crate::output;
use crate::record;
use crate::revoking::{self, Revocation, WAY_OUT};
use crate::serve::{Site, named, page};
use crate::words::{count, tame};

/// What the form sends. Another site's form does not know the token.
#[derive(Deserialize)]
pub(super) struct Wish {
    key: String,
    token: String,
    /// The holders that the page has shown, a list in JSON. A script may leave them out.
    holders: Option<String>,
}

pub(super) async fn force(State(site): State<Site>, Form(wish): Form<Wish>) -> Response {
    let Ok(guess) = Arc::clone(&site.guesses).try_acquire_owned() else {
        let text = "Too many wrong tokens. Nothing was changed: try again later.";
        let page = Html(page::message("Refused", text));
        return (StatusCode::TOO_MANY_REQUESTS, page).into_response();
    };
    let known = site
        .token
        .as_deref()
        .is_some_and(|it| same(it, &wish.token));
    if !known {
        // Guesses are slow, also together.
        tokio::time::sleep(site.every).await;
        let text = "The token is wrong, or this page was started without one. Nothing was changed.";
        return (StatusCode::FORBIDDEN, Html(page::message("Refused", text))).into_response();
    }
    drop(guess);
    let key = match named(&wish.key) {
        Ok(key) => key,
        Err(refused) => return refused.into_response(),
    };
    let name = key.as_str();
    let (status, title, text) = match revoke(&site, &key, wish.holders.as_deref()).await {
        Ok(Revocation::Free) => (
            StatusCode::OK,
            "Nothing changed",
            format!("`{name}` was free. Nothing was changed."),
        ),
        Ok(Revocation::Changed) => (
            StatusCode::CONFLICT,
            "Nothing changed",
            format!(
                "`{name}` has another holder than the one that the page has shown. Nothing was changed: look again; {WAY_OUT}."
            ),
        ),
        Ok(Revocation::Done(before, holders)) => {
            record(&site, &key, &before, holders);
            let holders = count(holders, "holder");
            let text = format!(
                "`{name}` was revoked from {holders}, whose work may overlap with the next holder's until it has stopped."
            );
            (StatusCode::OK, "Revoked", text)
        }
        Err(error) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Not confirmed",
            error.to_string(),
        ),
    };
    (status, Html(page::message(title, &text))).into_response()
}

/// Revokes the lock from the holders that the page has shown, or from all.
async fn revoke(site: &Site, key: &LockKey, seen: Option<&str>) -> Result<Revocation, LockError> {
    match seen {
        // What is no list was seen by nobody.
        Some(seen) => {
            let seen: Vec<_> = serde_json::from_str(seen).unwrap_or_default();
            revoking::revoke(&site.locks, key, &seen).await
        }
        None => revoking::revoke_from(&site.locks, site.locks.status(key).await?).await,
    }
}

/// Writes down who lost the lock, where the page was started.
fn record(site: &Site, key: &LockKey, before: &Status, released: usize) {
    let holders = &before.holders;
    let written = if site.json {
        output::object(&record::Revoked {
            at: record::timestamp(SystemTime::now()),
            event: "revoked",
            release: record::Release {
                key,
                released,
                holders: holders.iter().map(Into::into).collect(),
                waiters: before.waiting,
            },
        })
    } else {
        let (at, key) = (clock(SystemTime::now()), tame(key.as_str()));
        let holders: Vec<_> = holders.iter().map(revoking::holder).collect();
        output::line(format!("{at} `{key}` was revoked. {}", holders.join(" ")))
    };
    // Nobody may read it any more.
    drop(written);
}

/// Takes as long for every wrong token of a length.
fn same(one: &str, other: &str) -> bool {
    let differ = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && differ == 0
}
