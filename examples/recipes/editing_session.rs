//! An editor keeps a document locked over many requests, each of which another server may serve.
//!
//! Look at `save`: the browser sends its ticket, the server adopts the lock, writes, and answers with the next ticket.
//! Between two requests no server holds anything, so servers may restart. If an editor goes away, the ticket ends, and the
//! next editor opens the document; a late save of the first one writes nothing.
//!
//! ```text
//! cargo run -p recipes --example editing_session
//! LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example editing_session
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_runtime::{LockError, LockGuard, LockManager, Ticket};

/// How long a document stays locked without a request; minutes in a real service.
const IDLE: Duration = Duration::from_secs(2);

/// The database of all servers.
#[derive(Default)]
struct Documents(Mutex<HashMap<String, String>>);

impl Documents {
    fn write(&self, name: &str, text: &str) {
        let mut documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        documents.insert(name.to_owned(), text.to_owned());
    }

    fn read(&self, name: &str) -> String {
        let documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        documents.get(name).cloned().unwrap_or_default()
    }
}

struct Server {
    locks: LockManager,
    documents: Arc<Documents>,
}

impl Server {
    async fn start(url: &str, documents: &Arc<Documents>) -> Result<Self, LockError> {
        Ok(Self {
            locks: LockManager::connect(url).await?,
            documents: Arc::clone(documents),
        })
    }

    /// Returns what the browser keeps between its requests: the ticket, as text.
    async fn open(&self, document: &str, wait: Duration) -> Result<String, LockError> {
        let guard = self.locks.lock(document).wait(wait).acquire().await?;
        pass_on(guard).await
    }

    /// Writes the document that the ticket names, and no other. If the answer is lost, the next ticket is lost too, and the
    /// document stays locked until that ticket ends.
    async fn save(&self, ticket: &str, text: &str) -> Result<String, LockError> {
        let guard = self.locks.adopt(ticket.parse::<Ticket>()?).await?;
        let write = async { self.documents.write(guard.key().as_str(), text) };
        guard.hold(write).await?;
        pass_on(guard).await
    }

    async fn close(&self, ticket: &str) -> Result<(), LockError> {
        let guard = self.locks.adopt(ticket.parse::<Ticket>()?).await?;
        guard.release_confirmed().await?;
        Ok(())
    }
}

async fn pass_on(guard: LockGuard) -> Result<String, LockError> {
    let ticket = guard.into_ticket(IDLE).await?;
    Ok(ticket.to_string())
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:documents".to_owned());
    let documents = Arc::default();
    let first = Server::start(&url, &documents).await?;
    let second = Server::start(&url, &documents).await?;

    let anna = first.open("plan", Duration::ZERO).await?;
    println!("anna opens the plan");
    if let Err(error @ LockError::Contended { .. }) = second.open("plan", Duration::ZERO).await {
        println!("bert cannot open it: {error}");
    }
    let anna = second.save(&anna, "Lisbon").await?;
    let anna = first.save(&anna, "Porto").await?;
    second.close(&anna).await?;
    println!("anna closes it: {}", documents.read("plan"));

    let bert = second.open("plan", Duration::ZERO).await?;
    println!("bert opens it, and goes away");
    let anna = first.open("plan", 5 * IDLE).await?;
    println!("anna opens it when bert's ticket has ended");
    if let Err(error @ LockError::InvalidTicket { .. }) = second.save(&bert, "Madrid").await {
        println!("bert saves too late: {error}");
    }
    first.close(&anna).await?;
    println!("anna closes it: {}", documents.read("plan"));
    Ok(())
}
