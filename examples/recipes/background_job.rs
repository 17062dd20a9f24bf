//! A handler takes a lock, puts a job into a queue and answers; a worker goes on under the same lock.
//!
//! Look at `upload`: it turns its guard into a ticket, which travels with the job, and the lock stays closed while nobody
//! works under it. Look at `encode` as well: it adopts the ticket, with a larger fencing token. A job that is delivered
//! twice does nothing the second time.
//!
//! ```text
//! cargo run -p recipes --example background_job
//! LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example background_job
//! ```

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Router, serve};
use lock_runtime::{LockError, LockManager, Ticket, distributed_lock, key};
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A job that waits longer is not worth doing, and its lock is free again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

struct Job {
    id: i64,
    video: String,
    ticket: Ticket,
}

/// The table that the service and its workers share.
struct Queue(Mutex<Connection>);

impl Queue {
    fn new() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection
            .execute_batch("CREATE TABLE job (id INTEGER PRIMARY KEY, video TEXT, ticket TEXT)")?;
        Ok(Self(Mutex::new(connection)))
    }

    fn push(&self, video: &str, ticket: &Ticket) -> rusqlite::Result<()> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let job = params![video, ticket.to_string()];
        connection.execute("INSERT INTO job (video, ticket) VALUES (?1, ?2)", job)?;
        Ok(())
    }

    /// The oldest job, which stays until it is done.
    fn first(&self) -> Result<Option<Job>, Box<dyn Error>> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = "SELECT id, video, ticket FROM job ORDER BY id LIMIT 1";
        let row = connection
            .query_row(oldest, [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))
            })
            .optional()?;
        let Some((id, video, ticket)) = row else {
            return Ok(None);
        };
        let ticket = ticket.parse()?;
        Ok(Some(Job { id, video, ticket }))
    }

    fn done(&self, id: i64) -> rusqlite::Result<()> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        connection.execute("DELETE FROM job WHERE id = ?1", [id])?;
        Ok(())
    }
}

struct Service {
    locks: LockManager,
    queue: Arc<Queue>,
}

async fn upload(State(service): State<Arc<Service>>, Path(video): Path<String>) -> StatusCode {
    let guard = match service
        .locks
        .lock(key!("video:{video}"))
        .try_once()
        .acquire()
        .await
    {
        Ok(guard) => guard,
        Err(LockError::Contended { .. }) => return StatusCode::CONFLICT,
        Err(_) => return StatusCode::SERVICE_UNAVAILABLE,
    };
    let Ok(ticket) = guard.into_ticket(LONGEST_WAIT).await else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    if service.queue.push(&video, &ticket).is_err() {
        // Nobody else has the ticket: adopting it frees the lock.
        drop(service.locks.adopt(&ticket).await);
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    StatusCode::ACCEPTED
}

#[distributed_lock(ticket = job.ticket, release = "confirmed", manager = locks, guard = lock)]
async fn encode(locks: &LockManager, job: &Job) -> Result<(), LockError> {
    println!(
        "video {} is encoded, fencing token {}",
        job.video,
        lock.fencing_token()
    );
    Ok(())
}

/// Asks the service as its users do; returns the status.
async fn request(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("POST {path} HTTP/1.1\r\nHost: videos\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:videos".to_owned());
    let queue = Arc::new(Queue::new()?);
    let service = Service {
        locks: LockManager::connect(&url).await?,
        queue: Arc::clone(&queue),
    };
    let routes = Router::new()
        .route("/videos/{video}", post(upload))
        .with_state(Arc::new(service));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { serve(listener, routes).await });

    println!("first upload: {}", request(address, "/videos/7").await?);
    println!("second upload: {}", request(address, "/videos/7").await?);
    // The worker could be another process: all that it needs is the store and the job.
    let worker = LockManager::connect(&url).await?;
    // The queue delivers the job again, as queues do when a worker crashes before it says that the job is done.
    for _ in 0..2 {
        let Some(job) = queue.first()? else { break };
        match encode(&worker, &job).await {
            Err(LockError::InvalidTicket { .. }) => {
                println!("video {} is not encoded again", job.video);
                queue.done(job.id)?;
            }
            ended => ended?,
        }
    }
    println!("third upload: {}", request(address, "/videos/7").await?);
    Ok(())
}
