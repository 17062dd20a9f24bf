//! A terminal of 80 columns and 24 rows, with a program in it, and what its screen shows.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use nix::pty::{Winsize, openpty};
use tests::TIME_LIMIT;
use tokio::time::sleep;

use crate::support::hearing;

/// A program in a terminal of its own; dropping it closes the terminal.
pub(crate) struct Screen {
    parser: Arc<Mutex<vt100::Parser>>,
    keys: File,
    child: Child,
}

impl Screen {
    /// Starts a program as the leader of a session on a new terminal.
    pub(crate) fn start(program: &str, args: &[&str], url: &str) -> Self {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None).unwrap();
        let slave = || pty.slave.try_clone().unwrap();
        // The program of util-linux makes it the terminal that keys send signals from.
        let child = Command::new("setsid")
            .arg("--ctty")
            .args(hearing())
            .arg(program)
            .args(args)
            .env("LOCK_URL", url)
            .env("TERM", "xterm-256color")
            .env("PS1", "$ ")
            .stdin(slave())
            .stdout(slave())
            .stderr(slave())
            .spawn()
            .expect("setsid, of util-linux");
        let parser = Arc::new(Mutex::new(vt100::Parser::new(24, 80, 0)));
        let mut output = File::from(pty.master.try_clone().unwrap());
        let reader = Arc::clone(&parser);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                reader.lock().unwrap().process(&bytes[..count]);
            }
        });
        let keys = File::from(pty.master);
        Self {
            parser,
            keys,
            child,
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// What is on the screen, as text.
    pub(crate) fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// The same with its colours, as escape sequences.
    pub(crate) fn coloured(&self) -> String {
        let bytes = self.parser.lock().unwrap().screen().contents_formatted();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns when a text is on the screen.
    pub(crate) async fn shows(&self, text: &str) {
        self.comes_to(text, |screen| screen.contains(text)).await;
    }

    /// The first line that begins so, once it is there.
    pub(crate) async fn line(&self, start: &str) -> String {
        let find = |screen: &str| {
            let mut lines = screen.lines();
            lines
                .find(|it| it.starts_with(start))
                .map(ToOwned::to_owned)
        };
        self.comes_to(start, |screen| find(screen).is_some()).await;
        find(&self.text()).expect("it was there")
    }

    /// Returns when a text has left the screen.
    pub(crate) async fn hides(&self, text: &str) {
        self.comes_to(text, |screen| !screen.contains(text)).await;
    }

    async fn comes_to(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + TIME_LIMIT;
        while !is_so(&self.text()) {
            assert!(Instant::now() < deadline, "{what:?}:\n{}", self.text());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// How the program ended.
    pub(crate) async fn end(mut self) -> ExitStatus {
        let deadline = Instant::now() + TIME_LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it goes on:\n{}", self.text());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
