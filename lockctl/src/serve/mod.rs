//! `lockctl serve`: the locks as a small web page, rendered here and kept up to date by
//! server-sent events.

mod force;
mod live;
mod origin;
mod page;
mod visitors;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use lock_runtime::inspect::{Grant, Overview, Status};
use lock_runtime::{LockError, LockKey, LockManager};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::cli::{ServeArgs, StoreArgs};
use crate::exit::{Done, Exit, Failure};
use crate::key::key;
use crate::log;
use crate::output::{self, Output};
use crate::record;
use crate::since::{self, Watched};
use crate::store::{self, connect};

use visitors::Visitors;

/// Nothing from elsewhere, and nothing that stands in the page itself, is run or loaded.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The shortest token that is accepted.
const SHORTEST_TOKEN: usize = 16;
/// How many wrong tokens are answered together, each after a while.
const GUESSES: usize = 4;

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// What the pages are made from.
#[derive(Clone, Debug)]
struct Site {
    locks: LockManager,
    /// Which store this is, and what its keys begin with.
    store: Arc<str>,
    /// What the last look has found.
    seen: watch::Receiver<Seen>,
    /// What a user has to know to revoke locks; without one nobody may.
    token: Option<Arc<str>>,
    every: Duration,
    /// Whether programs read what is written to stdout.
    json: bool,
    /// How many tokens may be looked at together.
    guesses: Arc<Semaphore>,
}

impl Site {
    /// Who holds a lock, also as far as only its history knows.
    async fn status(&self, key: &LockKey) -> Result<Status, LockError> {
        let mut status = self.locks.status(key).await?;
        log::complete(&self.locks, &mut status).await;
        Ok(status)
    }

    /// The grants that were before; none where the store cannot say.
    async fn history(&self, key: &LockKey) -> Vec<Grant> {
        if !self.locks.capabilities().history {
            return Vec::new();
        }
        let mut history = self.locks.history(key).await.unwrap_or_default();
        history.retain(|it| it.end.is_some());
        history
    }
}

/// What the last look that has succeeded has found, and why a later one has not.
#[derive(Clone, Debug)]
struct Seen {
    overview: Arc<Overview>,
    at: SystemTime,
    trouble: Option<Arc<str>>,
}

type Refused = (StatusCode, Html<String>);

/// Which locks a page shows.
#[derive(Clone, Debug, Default, Deserialize)]
struct Search {
    #[serde(default)]
    q: String,
}

/// Which lock a page is about.
#[derive(Clone, Debug, Deserialize)]
struct One {
    key: String,
}

pub(crate) async fn serve(named: &StoreArgs, args: &ServeArgs, output: &Output) -> Done {
    refuse_short(args.token.as_deref())?;
    let locks = connect(named).await?;
    let mut first = locks.overview("*").await?;
    since::ask(&locks, first.locks.iter_mut()).await;
    let mut watched = Watched::default();
    let (sender, seen) = watch::channel(watched.saw(first));
    let site = Site {
        locks: locks.clone(),
        store: store::name(&locks).into(),
        seen,
        token: args.token.as_deref().map(Into::into),
        every: args.every,
        json: output.is_json(),
        guesses: Arc::new(Semaphore::new(GUESSES)),
    };
    let what = || format!("cannot listen at {}", args.listen);
    let listener = TcpListener::bind(args.listen).await;
    let listener = listener.map_err(|error| Failure::system(what(), error))?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::system(what(), error))?;
    let url = format!("http://{address}/");
    if output.is_json() {
        output::object(&record::Serving { url: &url })?;
    } else {
        output::line(format!("serving {url}"))?;
        if args.token.is_none() {
            output::line("nobody can revoke locks there: give --token for that")?;
        }
    }
    let visitors = Visitors::new(listener, visitors::SILENCE);
    let hosts = Hosts {
        local: address.ip().is_loopback(),
        named: args.host.iter().map(|it| without_port(it).into()).collect(),
    };
    let served = axum::serve(visitors, router(site, hosts));
    tokio::select! {
        result = served => result.map_err(|error| Failure::system("the page", error))?,
        () = look_again(&locks, &sender, &mut watched, args.every) => {}
    }
    Ok(Exit::Success)
}

/// Refuses a token that can be guessed; an empty one is in everybody's reach.
fn refuse_short(token: Option<&str>) -> Result<(), Failure> {
    if token.is_none_or(|it| it.chars().count() >= SHORTEST_TOKEN) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the token has to have {SHORTEST_TOKEN} characters or more: LOCKCTL_TOKEN=$(openssl rand -hex 16), or leave it \
         out, and nobody can revoke locks"
    )))
}

/// One look for all who have the page open.
async fn look_again(
    locks: &LockManager,
    sender: &watch::Sender<Seen>,
    watched: &mut Watched,
    every: Duration,
) {
    loop {
        tokio::time::sleep(every).await;
        let seen = match locks.overview("*").await {
            Ok(mut overview) => {
                since::ask_again(locks, &mut overview.locks).await;
                watched.saw(overview)
            }
            Err(error) => {
                watched.missed();
                Seen {
                    trouble: Some(error.to_string().into()),
                    ..sender.borrow().clone()
                }
            }
        };
        if sender.send(seen).is_err() {
            return;
        }
    }
}

impl Watched {
    fn saw(&mut self, mut overview: Overview) -> Seen {
        let at = SystemTime::now();
        self.complete(&mut overview, at);
        Seen {
            overview: Arc::new(overview),
            at,
            trouble: None,
        }
    }
}

fn router(site: Site, hosts: Hosts) -> Router {
    Router::new()
        .route("/", get(list))
        .route("/lock", get(lock))
        .route("/live/list", get(live::list))
        .route("/live/lock", get(live::lock))
        .route("/force", post(force::force))
        .route("/style.css", get(file(CSS, include_str!("style.css"))))
        .route("/live.js", get(file(SCRIPT, include_str!("live.js"))))
        .layer(middleware::from_fn(move |request, next| {
            guard(hosts.clone(), request, next)
        }))
        .with_state(site)
}

fn file(kind: &'static str, text: &'static str) -> impl IntoResponse + Clone {
    ([(CONTENT_TYPE, kind)], text)
}

/// Refuses requests that a stranger's page may have sent, and limits what ours may do.
async fn guard(hosts: Hosts, request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|it| it.to_str().ok());
    if !hosts.include(host) {
        let said = "this page is not served under that name: see --host";
        return (StatusCode::MISDIRECTED_REQUEST, said).into_response();
    }
    if !request.method().is_safe() && !origin::is_ours(request.headers()) {
        let said = "this was sent by a page of another site: nothing was changed";
        return (StatusCode::FORBIDDEN, said).into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With less, browsers would not say that a form is our own.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Under which names the page is served. A stranger's name may lead to this machine.
#[derive(Clone, Debug)]
struct Hosts {
    /// Whether it listens on loopback; else it is served under all names, unless some are named.
    local: bool,
    named: Arc<[String]>,
}

impl Hosts {
    fn include(&self, host: Option<&str>) -> bool {
        if !self.local && self.named.is_empty() {
            return true;
        }
        let Some(name) = host.map(without_port) else {
            return false;
        };
        let mut named = self.named.iter();
        is_local(name) || named.any(|it| it.eq_ignore_ascii_case(name))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_local(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

async fn list(State(site): State<Site>, Query(search): Query<Search>) -> Html<String> {
    let seen = site.seen.borrow().clone();
    Html(page::list(&search.q, &seen, &site.store))
}

async fn lock(State(site): State<Site>, Query(one): Query<One>) -> Result<Html<String>, Refused> {
    let key = named(&one.key)?;
    let status = site.status(&key).await;
    let history = site.history(&key).await;
    Ok(Html(page::lock(
        &key,
        &status,
        &history,
        &site.store,
        site.token.is_some(),
    )))
}

/// The lock that a request names.
fn named(text: &str) -> Result<LockKey, Refused> {
    key(text).map_err(|error| {
        let page = page::message("No such lock", &error.to_string());
        (StatusCode::BAD_REQUEST, Html(page))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served_under(local: bool, named: &[&str], host: &str) -> bool {
        let named = named.iter().map(|it| (*it).to_owned()).collect();
        Hosts { local, named }.include(Some(host))
    }

    #[test]
    fn strangers_names_do_not_lead_here() {
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:80",
            "[::1]:8080",
            "[::1]",
        ] {
            assert!(served_under(true, &[], host), "{host}");
            assert!(served_under(true, &["locks.example"], host), "{host}");
            assert!(served_under(false, &["locks.example"], host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "10.0.0.1",
            "localhost.evil",
            "",
        ] {
            assert!(!served_under(true, &[], host), "{host}");
            assert!(!served_under(true, &["locks.example"], host), "{host}");
            assert!(!served_under(false, &["locks.example"], host), "{host}");
        }
    }

    #[test]
    fn a_proxy_has_a_name_of_its_own() {
        for host in ["locks.example", "Locks.Example:443"] {
            assert!(served_under(true, &["other", "locks.example"], host));
            assert!(served_under(false, &["locks.example"], host));
        }
    }

    #[test]
    fn elsewhere_every_name_leads_here_unless_some_are_given() {
        assert!(served_under(false, &[], "10.0.0.1:8088"));
    }
}
