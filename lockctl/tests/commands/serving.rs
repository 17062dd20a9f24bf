//! `serve`: the page, what it refuses, and how it looks after itself in a real browser.

use serde_json::{Value, json};
use tests::{LONG, RedisServer, TIME_LIMIT, connect, queued, release, take, within};

use crate::{
    browser::Browser,
    http::{Events, get, send},
    support::{Running, lockctl, ran},
};

const TOKEN: &str = "s3cret-s3cret-s3cret";
const WILD: &str = "order:<script>document.title='taken'</script>";

/// A page of a server, and where it is.
pub(crate) async fn serve(server: &RedisServer, args: &[&str]) -> (Running, String) {
    let mut args = [&["serve", "--listen", "127.0.0.1:0", "--json"], args].concat();
    if !args.contains(&"--every") {
        args.extend(["--every", "100ms"]);
    }
    let mut serving = Running::start(lockctl(server, &args));
    let object: Value = serde_json::from_str(&serving.line().await).unwrap();
    let url = object["url"].as_str().unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    (serving, address.to_owned())
}

#[tokio::test]
async fn the_page_has_the_locks_and_escapes_their_names() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _wild = take(&locks, WILD, LONG).await;
    let _lamp = take(&locks, "stock:lamp", LONG).await;
    let waiter = locks.lock("stock:lamp").function("shop::wait");
    let _waiter = queued(&locks, waiter.wait_forever()).await;
    let (_serving, address) = serve(&server, &[]).await;

    let mut events = Events::from(&address, "/live/list?q=").await;
    events.with("stock:lamp").await;
    let all = get(&address, "/").await;
    assert_eq!(all.status, 200);
    assert!(
        all.head
            .contains("content-security-policy: default-src 'none';"),
        "{}",
        all.head
    );
    assert!(
        all.body.contains("stock:lamp") && all.body.contains("order:&lt;script&gt;"),
        "{}",
        all.body
    );
    let some = get(&address, "/?q=lamp").await.body;
    assert!(
        some.contains("stock:lamp") && !some.contains("order:"),
        "{some}"
    );
    let one = get(&address, "/lock?key=stock%3Alamp").await.body;
    assert!(
        one.contains("shop::wait") && one.contains("<b>1</b> waiting"),
        "{one}"
    );
    let path = "/lock?key=order%3A%3Cscript%3Edocument.title%3D%27taken%27%3C%2Fscript%3E";
    let wild = get(&address, path).await.body;
    for page in [&all.body, &some, &one, &wild] {
        assert!(!page.contains("<script>document"), "{page}");
        assert!(
            !page.contains("//") || !page.contains("https://"),
            "something from elsewhere: {page}"
        );
    }
    assert!(wild.contains("<b>held</b>"), "{wild}");
    for (path, kind) in [("/style.css", "text/css"), ("/live.js", "text/javascript")] {
        assert!(get(&address, path).await.head.contains(kind));
    }
}

#[tokio::test]
async fn events_tell_what_changes() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let (_serving, address) = serve(&server, &[]).await;
    let mut list = Events::from(&address, "/live/list?q=").await;
    let mut one = Events::from(&address, "/live/lock?key=key").await;
    list.with("No lock is held").await;
    one.with("<b>free</b>").await;
    let guard = take(&locks, "key", LONG).await;
    list.with("/lock?key=key").await;
    one.with(r#""event":"granted""#).await;
    one.with("<b>held</b>").await;
    release(guard).await;
    one.with(r#""event":"released""#).await;
    list.with("No lock is held").await;
}

#[tokio::test]
async fn a_lock_is_revoked_with_the_token_alone() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let force = async |address: &str, body: &str| send(address, "POST /force", form, body).await;

    let (_without, address) = serve(&server, &[]).await;
    for body in ["key=key&token=", "key=key&token=s3cret"] {
        assert_eq!(force(&address, body).await.status, 403, "{body}");
    }
    assert!(
        !get(&address, "/lock?key=key")
            .await
            .body
            .contains("<button>")
    );
    let (_with, address) = serve(&server, &["--token", TOKEN]).await;
    assert!(
        get(&address, "/lock?key=key")
            .await
            .body
            .contains("<button>")
    );
    for body in [
        "key=key&token=",
        "key=key&token=s3cret-s3cret-s3cre",
        "key=key&token=s3cret-s3cret-s3cret2",
        "key=key&token=S3cret-s3cret-s3cret",
    ] {
        assert_eq!(force(&address, body).await.status, 403, "{body}");
    }
    assert_eq!(force(&address, "key=key").await.status, 422);
    assert_eq!(
        get(&address, "/force?key=key&token=s3cret-s3cret-s3cret")
            .await
            .status,
        405
    );
    assert!(guard.is_held());
    let done = force(&address, "key=key&token=s3cret-s3cret-s3cret").await;
    assert_eq!(done.status, 200);
    assert!(done.body.contains("revoked from 1 holder"), "{}", done.body);
    within(TIME_LIMIT, guard.lost()).await;
}

#[tokio::test]
async fn only_the_holders_that_were_shown_lose_the_lock() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let first = take(&locks, "key", LONG).await;
    let (_serving, address) = serve(&server, &["--token", TOKEN]).await;
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let force = async |page: &str| {
        let (_, shown) = page.split_once(r#"name="holders" value=""#).unwrap();
        let (holders, _) = shown.split_once('"').unwrap();
        let holders = holders.replace("&quot;", "%22");
        let body = format!("key=key&token={TOKEN}&holders={holders}");
        send(&address, "POST /force", form, &body).await
    };
    let shown = get(&address, "/lock?key=key").await.body;
    release(first).await;
    let second = take(&locks, "key", LONG).await;
    let refused = force(&shown).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(!refused.body.contains("Revoked"), "{}", refused.body);
    assert!(second.is_held());
    let shown = get(&address, "/lock?key=key").await.body;
    let done = force(&shown).await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert!(done.body.contains("<h1>Revoked</h1>"), "{}", done.body);
    within(TIME_LIMIT, second.lost()).await;
    let free = force(&shown).await;
    assert_eq!(free.status, 200);
    assert!(!free.body.contains("Revoked"), "{}", free.body);
}

#[tokio::test]
async fn a_token_that_can_be_guessed_is_refused() {
    let server = RedisServer::start().await;
    for token in ["", "s3cret", "fifteen letters"] {
        let done = ran(
            &server,
            &["serve", "--listen", "127.0.0.1:0", "--token", token],
        )
        .await;
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains("16 characters"), "{done:?}");
        assert!(token.is_empty() || !done.stderr.contains(token), "{done:?}");
    }
}

#[tokio::test]
async fn a_form_of_another_site_takes_nothing_away() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let (_serving, address) = serve(&server, &["--token", TOKEN]).await;
    let force = async |field: &str| {
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let body = format!("key=key&token={TOKEN}");
        let fields = format!("{form}{field}\r\n");
        let sent = send(&address, "POST /force", &fields, &body);
        sent.await.status
    };
    for field in [
        "Origin: http://evil.example",
        "Origin: null",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        assert_eq!(force(field).await, 403, "{field}");
    }
    assert!(guard.is_held());
    assert_eq!(force(&format!("Origin: http://{address}")).await, 200);
    within(TIME_LIMIT, guard.lost()).await;
}

#[tokio::test]
async fn many_wrong_tokens_together_are_not_looked_at() {
    let server = RedisServer::start().await;
    let slow = ["--token", TOKEN, "--every", "10s"];
    let (_serving, address) = serve(&server, &slow).await;
    let mut guesses = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let address = address.clone();
        guesses.spawn(async move {
            let form = "Content-Type: application/x-www-form-urlencoded\r\n";
            let body = "key=key&token=guess";
            send(&address, "POST /force", form, body).await.status
        });
    }
    // The first few are answered later.
    for _ in 0..6 {
        let status = within(TIME_LIMIT, guesses.join_next()).await.unwrap();
        assert_eq!(status.unwrap(), 429);
    }
}

#[tokio::test]
async fn a_strangers_name_does_not_lead_to_the_page() {
    let server = RedisServer::start().await;
    let (_serving, address) = serve(&server, &[]).await;
    for (host, status) in [
        ("evil.example", 421),
        ("localhost", 200),
        ("127.0.0.1:1", 200),
    ] {
        let header = format!("Host: {host}\r\n");
        assert_eq!(
            send(&address, "GET /", &header, "").await.status,
            status,
            "{host}"
        );
    }
    let hosts = ["--host", "locks.example", "--host", "locks.test"];
    let (_behind_a_proxy, named) = serve(&server, &hosts).await;
    for (host, status) in [("locks.example", 200), ("evil.example", 421)] {
        let header = format!("Host: {host}\r\n");
        assert_eq!(send(&named, "GET /", &header, "").await.status, status);
    }
    let taken = ran(&server, &["serve", "--listen", &address]).await;
    assert_eq!(taken.code, 1, "{taken:?}");
    assert!(taken.stderr.contains("cannot listen"), "{taken:?}");
}

#[tokio::test]
async fn the_page_names_the_store_and_denies_nothing() {
    let mut server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _lamp = take(&locks, "stock:lamp", LONG).await;
    let (_serving, address) = serve(&server, &["--token", TOKEN]).await;
    let all = get(&address, "/").await.body;
    let store = format!("Redis at {}, prefix `lock`, as of ", server.addr());
    assert!(all.contains(&store), "{all}");
    assert!(
        all.contains("held for") && all.contains("longest wait"),
        "{all}"
    );
    let none = get(&address, "/?q=zzz").await.body;
    assert!(
        none.contains("No lock matches `zzz` (1 is held)."),
        "{none}"
    );
    let held = get(&address, "/lock?key=stock%3Alamp").await.body;
    for part in [
        "Its process answers.",
        "Nobody waits for it.",
        "compares fencing tokens",
    ] {
        assert!(held.contains(part), "no {part:?} in {held}");
    }
    assert!(held.contains(r#"action="/force">"#), "{held}");
    let free = get(&address, "/lock?key=free").await.body;
    assert!(free.contains(r#"action="/force" hidden>"#), "{free}");

    let mut events = Events::from(&address, "/live/list?q=").await;
    server.kill().await;
    events.with("is unavailable").await;
    // What was seen last is still shown.
    let gone = get(&address, "/").await.body;
    assert!(
        gone.contains("is unavailable") && gone.contains("stock:lamp"),
        "{gone}"
    );
}

#[tokio::test]
async fn what_is_revoked_on_the_page_is_written_down() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let (mut serving, address) = serve(&server, &["--token", TOKEN]).await;
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let body = format!("key=key&token={TOKEN}");
    assert_eq!(send(&address, "POST /force", form, &body).await.status, 200);
    let line: Value = serde_json::from_str(&serving.line().await).unwrap();
    assert_eq!(
        (&line["event"], &line["key"]),
        (&"revoked".into(), &"key".into())
    );
    assert_eq!(line["holders"][0]["fence"], guard.fencing_token().get());
    assert!(line["at"].is_string() && line["released"] == 1, "{line}");
}

#[tokio::test]
async fn a_browser_shows_what_happens_and_runs_no_names() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _wild = take(&locks, WILD, LONG).await;
    let (_serving, address) = serve(&server, &["--token", TOKEN]).await;
    let Some(browser) = Browser::start(address).await else {
        return;
    };
    browser.go("/").await;
    browser.shows(WILD).await;
    assert_eq!(
        browser.run("return document.title").await,
        "Locks · lockctl"
    );
    let guard = take(&locks, "stock:lamp", LONG).await;
    browser.shows("stock:lamp").await;
    let open = "[...document.links].find(it => it.text == 'stock:lamp').click()";
    browser.run(open).await;
    browser.shows("Since this page was opened").await;
    let next = queued(&locks, locks.lock("stock:lamp").ttl(LONG).wait_forever()).await;
    browser.shows("1 waiting").await;
    release(guard).await;
    let next = within(TIME_LIMIT, next).await.unwrap();
    let history = "const text = document.getElementById('history').textContent; \
                   return text.includes('released') && text.includes('handed over')";
    browser.comes_to(history).await;
    // The chart is drawn, and the text around the names is no part of it.
    browser
        .comes_to("return document.querySelectorAll('#chart polyline').length == 1")
        .await;
    browser.shows("at most 1; hand-overs").await;
    let is_hidden = "return document.querySelector('form.force').hidden";
    assert_eq!(browser.run(is_hidden).await, false);
    let token = format!("document.querySelector('[name=token]').value = '{TOKEN}'");
    browser.run(&token).await;
    browser
        .run("document.querySelector('button').click()")
        .await;
    browser.shows("revoked from 1 holder").await;
    within(TIME_LIMIT, next.lost()).await;

    // A free lock is not offered to be revoked.
    browser.go("/lock?key=free").await;
    browser.shows("free").await;
    let is_hidden = "return document.querySelector('form.force').offsetParent === null";
    assert_eq!(browser.run(is_hidden).await, true);
    browser.end().await;
}

#[tokio::test]
async fn a_page_says_that_there_is_nothing_and_who_does_not_answer() {
    let mut server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let (serving, address) = serve(&server, &[]).await;
    let Some(browser) = Browser::start(address).await else {
        return;
    };
    browser.go("/").await;
    browser.shows("No lock is held or waited for.").await;
    let _lamp = take(&locks, "stock:lamp", LONG).await;
    browser.shows("stock:lamp").await;
    browser.go("/lock?key=stock%3Alamp").await;
    browser.shows("Its process answers.").await;
    server.kill().await;
    let why = "return document.getElementById('stale').textContent";
    let has = |text: &str| format!("{why}.includes('{text}')");
    browser.comes_to(&has("is unavailable")).await;
    // What was seen last is still shown.
    browser.shows("Holders").await;
    browser.go("/").await;
    browser.shows("is unavailable").await;
    browser.shows("stock:lamp").await;
    assert_eq!(browser.run(why).await, "");
    drop(serving);
    browser.comes_to(&has("lockctl does not answer")).await;
    browser.shows("stock:lamp").await;
    browser.end().await;
}

#[tokio::test]
async fn locks_are_found_chosen_and_opened_by_keyboard() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _first = take(&locks, "stock:first", LONG).await;
    let _second = take(&locks, "stock:second", LONG).await;
    let (_serving, address) = serve(&server, &[]).await;
    let Some(browser) = Browser::start(address).await else {
        return;
    };
    let focused = "return document.activeElement.textContent || document.activeElement.name";
    browser.go("/").await;
    browser.shows("stock:second").await;
    browser.press("/").await;
    assert_eq!(browser.run(focused).await, "q");
    browser.press("Escape").await;
    browser.press("j").await;
    let first = browser.run(focused).await;
    browser.press("j").await;
    let second = browser.run(focused).await;
    assert_ne!(first, second);
    // What is replaced meanwhile keeps the focus.
    browser
        .run("window.before = document.querySelector('tbody')")
        .await;
    browser
        .comes_to("return !document.contains(window.before)")
        .await;
    assert_eq!(browser.run(focused).await, second);
    browser.press("k").await;
    assert_eq!(browser.run(focused).await, first);
    browser.end().await;
}

#[tokio::test]
async fn the_page_fits_a_phone_and_is_readable_in_the_dark() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _wild = take(&locks, WILD, LONG).await;
    let (_serving, address) = serve(&server, &[]).await;
    let Some(browser) = Browser::start(address).await else {
        return;
    };
    browser.go("/").await;
    browser.shows(WILD).await;
    let narrow = json!({"width": 360, "height": 700});
    browser.command("POST", "window/rect", &narrow).await;
    let fits =
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(browser.run(fits).await, true);
    let dark = json!({"cmd": "Emulation.setEmulatedMedia", "params":
        {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}});
    browser.command("POST", "goog/cdp/execute", &dark).await;
    let colours =
        "const it = getComputedStyle(document.body); return [it.color, it.backgroundColor]";
    assert_eq!(
        browser.run(colours).await,
        json!(["rgb(232, 234, 237)", "rgb(22, 24, 27)"])
    );
    browser.end().await;
}
