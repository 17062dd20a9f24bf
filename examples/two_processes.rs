//! Two processes share one lock on a Redis server.
//!
//! Look at the turns: while both live they alternate, because a release hands
//! the lock to the first waiter. Then one is killed while it holds the lock,
//! and the other goes on when the ttl of the dead one has passed, not before.
//!
//! ```text
//! cargo run --example two_processes
//! LOCK_URL=redis://127.0.0.1:6379 cargo run --example two_processes
//! ```

use std::error::Error;
use std::io::{self, BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use lock_runtime::{LockError, distributed_lock};

/// How the program knows itself as a child.
const CHILD: &str = "take-turns";
const NAMES: [&str; 2] = ["anna", "bert"];
const TURNS: usize = 6;
const TTL: Duration = Duration::from_secs(2);
/// Nothing here takes this long.
const TIME_LIMIT: Duration = Duration::from_secs(20);

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

#[distributed_lock(key = "two-processes", ttl = TTL, wait = "10s", guard = lock)]
async fn turn() -> Result<(), LockError> {
    println!("takes the lock, fencing token {}", lock.fencing_token());
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}

#[tokio::main]
async fn child(url: &str) -> Result<()> {
    let _locks = lock_runtime::init(url).await?;
    loop {
        turn().await?;
    }
}

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some(CHILD) {
        return child(&std::env::var("LOCK_URL")?);
    }
    let (_server, url) = match std::env::var("LOCK_URL") {
        Ok(url) => (None, url),
        Err(_) => start_redis().map(|(server, url)| (Some(server), url))?,
    };

    let (sender, lines) = channel();
    let mut children = Vec::new();
    for name in NAMES {
        children.push(start_child(name, &url, &sender)?);
    }
    let start = Instant::now();
    for _ in 0..TURNS {
        next_line(&lines, start)?;
    }

    let holder = next_line(&lines, start)?;
    let killed = Instant::now();
    println!("{:>5} ms  {holder} is killed", ms(start.elapsed()));
    children.retain(|(name, _)| *name != holder); // dropping a process kills it
    let other = next_line(&lines, start)?;
    println!(
        "{other} goes on {} ms after the death of {holder}; the ttl is {} ms",
        ms(killed.elapsed()),
        ms(TTL)
    );
    Ok(())
}

/// Waits for somebody to take the lock; returns who it is.
fn next_line(lines: &Receiver<(&'static str, String)>, start: Instant) -> Result<&'static str> {
    let (name, line) = lines.recv_timeout(TIME_LIMIT)?;
    println!("{:>5} ms  {name} {line}", ms(start.elapsed()));
    Ok(name)
}

fn start_child(
    name: &'static str,
    url: &str,
    lines: &Sender<(&'static str, String)>,
) -> Result<(&'static str, Process)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .env("LOCK_URL", url)
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().ok_or("the child has no stdout")?;
    let lines = lines.clone();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(io::Result::ok) {
            if lines.send((name, line)).is_err() {
                return;
            }
        }
    });
    Ok((name, Process(child)))
}

fn start_redis() -> Result<(Process, String)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let server = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--save", "", "--port"])
        .arg(port.to_string())
        .current_dir(std::env::temp_dir())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "redis-server is missing: install the package \
                `redis-server` (Debian) or `redis`, or set LOCK_URL to a server's URL"
                .to_owned(),
            _ => format!("redis-server does not start: {error}"),
        })?;
    println!("redis-server on port {port}");
    Ok((Process(server), format!("redis://127.0.0.1:{port}")))
}

/// A process that ends with its owner.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ms(time: Duration) -> u128 {
    time.as_millis()
}
