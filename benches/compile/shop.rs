//! What the functions work with: values, a database whose calls are boxed futures, and an error.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::task::Context;

use lock_runtime::LockError;

#[derive(Clone, Debug)]
pub struct Item {
    pub id: u64,
    pub name: String,
    pub price: u64,
}

#[derive(Debug)]
pub struct Order {
    pub id: u64,
    pub user: String,
    pub items: Vec<Item>,
}

impl Order {
    pub fn new(id: u64) -> Self {
        Self { id, user: "a".into(), items: Vec::new() }
    }
}

#[derive(Debug)]
pub struct Receipt {
    pub order: u64,
    pub total: u64,
}

#[derive(Debug)]
pub enum ShopError {
    Lock(LockError),
    Database(DatabaseError),
    SoldOut(String),
}

impl From<LockError> for ShopError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl From<DatabaseError> for ShopError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

#[derive(Debug)]
pub struct DatabaseError;

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the database failed")
    }
}

pub type Reply<'a> = Pin<Box<dyn Future<Output = Result<u64, DatabaseError>> + Send + 'a>>;

#[derive(Debug)]
pub struct Shop {
    pub name: String,
}

impl Shop {
    pub fn query<'a>(&'a self, statement: &'a str, id: u64) -> Reply<'a> {
        let known = !self.name.is_empty() && !statement.is_empty();
        Box::pin(ready(if known { Ok(id) } else { Err(DatabaseError) }))
    }

    pub async fn price(&self, item: &Item) -> Result<u64, DatabaseError> {
        let discount = self.query("SELECT discount", item.id).await?;
        Ok(item.price.saturating_sub(discount))
    }
}

/// A function that runs, whatever it returns.
pub trait Runs: Send {
    fn is_done(self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool;
}

impl<F: Future + Send> Runs for F {
    fn is_done(self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        self.poll(cx).is_ready()
    }
}

pub type Job<'a> = Pin<Box<dyn Runs + 'a>>;
