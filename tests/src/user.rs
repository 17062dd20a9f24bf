//! A connection of a user's own to a database that keeps locks, for transactions that assert fences.

use std::fmt::Display;

use crate::{MysqlPeer, PostgresPeer, Rows, SCHEMA, SqlError};

/// Such a connection, of the superuser.
#[derive(Debug)]
pub enum User {
    /// To PostgreSQL.
    Postgres(PostgresPeer),
    /// To MySQL or MariaDB.
    Mysql(MysqlPeer),
}

impl User {
    /// Connects to the first server of the URL of locks.
    pub async fn connect(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").expect("a URL");
        let (_, rest) = rest.split_once('@').expect("a user");
        let (hosts, rest) = rest.split_once('/').expect("a database");
        let first = hosts.split(',').next().and_then(|it| it.parse().ok());
        let server = first.expect("an address");
        match scheme {
            "postgres" => Self::Postgres(PostgresPeer::connect(server).await),
            "mysql" => {
                let database = rest.split('?').next().unwrap_or_default();
                Self::Mysql(MysqlPeer::connect(server, database).await)
            }
            _ => panic!("no database: {url}"),
        }
    }

    /// The rows of a statement, or of several.
    ///
    /// # Errors
    ///
    /// What the server answers, with its SQLSTATE as the code, or that the connection broke.
    pub async fn try_rows(&mut self, sql: &str) -> Result<Rows, SqlError> {
        match self {
            Self::Postgres(peer) => peer.try_rows(sql).await,
            Self::Mysql(peer) => peer.try_rows(sql).await.map_err(|error| SqlError {
                code: error.state,
                message: error.message,
            }),
        }
    }

    /// The same; panics if one fails.
    pub async fn rows(&mut self, sql: &str) -> Rows {
        let rows = self.try_rows(sql).await;
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The number in the first column of each row.
    pub async fn numbers(&mut self, sql: &str) -> Vec<i64> {
        let rows = self.rows(sql).await.into_iter();
        let first = rows.map(|row| row.into_iter().next().flatten());
        let number = |it: Option<String>| it.and_then(|it| it.parse().ok());
        first.map(|it| number(it).expect("a number")).collect()
    }

    /// What begins a transaction of an isolation level.
    pub fn begin(&self, level: &str) -> String {
        match self {
            Self::Postgres(_) => format!("BEGIN ISOLATION LEVEL {level}"),
            Self::Mysql(_) => format!("SET TRANSACTION ISOLATION LEVEL {level}; BEGIN"),
        }
    }

    /// What asserts a fence.
    pub fn assertion(&self, key: &str, fence: impl Display) -> String {
        match self {
            Self::Postgres(_) => format!("SELECT {SCHEMA}.assert_fence('{key}', {fence})"),
            Self::Mysql(_) => format!("CALL lock_runtime_assert_fence('{key}', {fence}, 'lock')"),
        }
    }
}
