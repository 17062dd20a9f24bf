//! A browser without a window, driven over HTTP.

use std::process::Stdio;

use serde_json::{Value, json};
use tests::{TIME_LIMIT, eventually, within};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::http::drive;

/// What it can do without here.
const FLAGS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// It has one window.
pub(crate) struct Browser {
    _process: Child,
    /// Where its driver listens.
    driver: String,
    session: String,
    /// Where the pages are.
    site: String,
}

impl Browser {
    /// For pages at an address; `None` where there is no driver.
    pub(crate) async fn start(site: String) -> Option<Self> {
        let (process, driver) = start_driver().await?;
        let mut chrome = json!({"args": FLAGS});
        // Where it is not at the usual place.
        if let Ok(binary) = std::env::var("CHROME_BINARY") {
            chrome["binary"] = binary.into();
        }
        let options = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": chrome}}});
        let session = drive(&driver, "POST /session", &options).await;
        Some(Self {
            _process: process,
            driver,
            session: session["sessionId"].as_str().unwrap().to_owned(),
            site,
        })
    }

    /// Opens a page.
    pub(crate) async fn go(&self, path: &str) {
        let url = json!({"url": format!("http://{}{path}", self.site)});
        self.command("POST", "url", &url).await;
    }

    /// What a script returns.
    pub(crate) async fn run(&self, script: &str) -> Value {
        let script = json!({"script": script, "args": []});
        self.command("POST", "execute/sync", &script).await
    }

    /// Returns when a script returns `true`.
    pub(crate) async fn comes_to(&self, script: &str) {
        eventually(TIME_LIMIT, async || self.run(script).await == true).await;
    }

    /// Returns when a text is on the page.
    pub(crate) async fn shows(&self, text: &str) {
        let text = json!(text);
        self.comes_to(&format!("return document.body.innerText.includes({text})"))
            .await;
    }

    /// Presses a key where the focus is.
    pub(crate) async fn press(&self, key: &str) {
        let event = format!("new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})");
        let script = format!("(document.activeElement ?? document.body).dispatchEvent({event})");
        self.run(&script).await;
    }

    /// A command of the driver.
    pub(crate) async fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let path = format!("{method} /session/{}/{path}", self.session);
        drive(&self.driver, &path, body).await
    }

    /// Closes it.
    pub(crate) async fn end(self) {
        let session = format!("DELETE /session/{}", self.session);
        drive(&self.driver, &session, &Value::Null).await;
    }
}

/// The driver, and where it listens.
async fn start_driver() -> Option<(Child, String)> {
    let mut driver = Command::new("chromedriver");
    driver
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let Ok(mut driver) = driver.spawn() else {
        eprintln!("NOTICE: the page was not tried in a browser: there is no chromedriver");
        return None;
    };
    let mut lines = BufReader::new(driver.stdout.take().unwrap());
    loop {
        let mut line = String::new();
        let read = lines.read_line(&mut line);
        assert!(
            within(TIME_LIMIT, read).await.unwrap() > 0,
            "the driver has ended"
        );
        if let Some((_, port)) = line.split_once("successfully on port ") {
            let address = format!("127.0.0.1:{}", port.trim().trim_end_matches('.'));
            // It writes on.
            tokio::spawn(async move {
                let mut rest = Vec::new();
                let _ = lines.read_to_end(&mut rest).await;
            });
            return Some((driver, address));
        }
    }
}
