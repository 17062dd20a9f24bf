//! A client that calls the functions by hand, over a connection of its own.

use std::{fmt::Debug, time::Duration};

use tests::{PostgresHome, PostgresPeer, Rows, SqlError};

/// A lease that no test outlives.
pub(crate) const LONG_MS: u32 = 60_000;

/// What `acquire` is asked for; waits for an exclusive lock unless told otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) lock: String,
    pub(crate) token: u128,
    pub(crate) kind: &'static str,
    pub(crate) who: &'static str,
    pub(crate) ttl: u32,
    pub(crate) wait: bool,
    pub(crate) place: Option<i64>,
    pub(crate) longest: u32,
    pub(crate) durable: bool,
}

impl Wanted {
    pub(crate) fn new(lock: &str, token: u128) -> Self {
        Self {
            lock: lock.to_owned(),
            token,
            kind: "x",
            who: "1@host tests::body",
            ttl: LONG_MS,
            wait: true,
            place: None,
            longest: 0,
            durable: true,
        }
    }
}

/// A row of the type `reply`; what is null is zero or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: String,
    pub(crate) fence: i64,
    pub(crate) place: i64,
    pub(crate) left: i64,
    pub(crate) holder: String,
    pub(crate) others: i64,
    pub(crate) longest: i64,
    pub(crate) kind: String,
    pub(crate) call: usize,
}

impl Reply {
    pub(crate) fn is(&self, status: &str) -> bool {
        self.status == status
    }

    fn read(row: &[Option<String>]) -> Self {
        let text = |column: usize| row[column].clone().unwrap_or_default();
        let number = |column: usize| row[column].as_ref().map_or(0, |it| it.parse().unwrap());
        Self {
            status: text(0),
            fence: number(1),
            place: number(2),
            left: number(3),
            holder: text(4),
            others: number(5),
            longest: number(6),
            kind: text(7),
            call: usize::try_from(number(8)).unwrap(),
        }
    }
}

/// The answer of `ask`.
#[derive(Debug)]
pub(crate) struct Standings {
    pub(crate) left: i64,
    pub(crate) holder: String,
    pub(crate) others: i64,
    pub(crate) first: usize,
    /// None in the quarantine.
    pub(crate) fences: Option<Vec<i64>>,
}

/// One connection, and the session that it stands for.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) sql: PostgresPeer,
    pub(crate) schema: String,
    pub(crate) session: u128,
    bell: bool,
}

/// As an argument.
pub(crate) fn uuid(id: u128) -> String {
    format!("'{id:032x}'::uuid")
}

fn array<T>(items: &[T], kind: &str, write: impl Fn(&T) -> String) -> String {
    let items: Vec<_> = items.iter().map(write).collect();
    format!("ARRAY[{}]::{kind}[]", items.join(","))
}

fn uuids(tokens: &[u128]) -> String {
    array(tokens, "uuid", |token| uuid(*token))
}

/// What a call returns. None if a row was locked for longer than the functions wait: then the runtime calls again, too.
fn unlocked<T>(call: impl Debug, outcome: Result<T, SqlError>) -> Option<T> {
    match outcome {
        Err(error) if error.code == "55P03" => None,
        outcome => Some(outcome.unwrap_or_else(|error| panic!("{call:?}: {error}"))),
    }
}

impl Peer {
    /// One that holds its bell and listens, as a direct connection does.
    pub(crate) async fn new(home: &PostgresHome) -> Self {
        Self::of(home.peer().await, home.schema()).await
    }

    /// One that can neither hold a bell nor listen, as behind a pooler.
    pub(crate) async fn pooled(home: &PostgresHome) -> Self {
        Self::silent(home.peer().await, home.schema())
    }

    pub(crate) async fn of(sql: PostgresPeer, schema: &str) -> Self {
        let mut this = Self::silent(sql, schema);
        this.bell = true;
        let key = format!("{schema}.bell({})", uuid(this.session));
        this.sql
            .rows(&format!("SELECT pg_advisory_lock({key})"))
            .await;
        let listen = format!("LISTEN lock_runtime_{:032x}", this.session);
        this.sql.rows(&listen).await;
        this
    }

    pub(crate) fn silent(sql: PostgresPeer, schema: &str) -> Self {
        Self {
            sql,
            schema: schema.to_owned(),
            session: fastrand::u128(..),
            bell: false,
        }
    }

    /// The rows that a function returns.
    pub(crate) async fn try_call(&mut self, call: &str) -> Result<Rows, SqlError> {
        self.sql
            .try_rows(&format!("SELECT * FROM {}.{call}", self.schema))
            .await
    }

    pub(crate) async fn call(&mut self, call: &str) -> Rows {
        loop {
            if let Some(rows) = unlocked(call, self.try_call(call).await) {
                return rows;
            }
        }
    }

    async fn truth(&mut self, call: &str) -> bool {
        self.call(call).await[0][0].as_deref() == Some("t")
    }

    pub(crate) async fn try_acquire(&mut self, wanted: &Wanted) -> Result<Reply, SqlError> {
        let Wanted {
            lock,
            kind,
            who,
            ttl,
            wait,
            longest,
            durable,
            ..
        } = wanted;
        let (token, session, bell) = (uuid(wanted.token), uuid(self.session), self.bell);
        let place = wanted.place.map_or("NULL".to_owned(), |it| it.to_string());
        let call = format!(
            "acquire('{lock}', {token}, '{who}', '{kind}', {ttl}, {session}, {bell}, {wait}, {place}, {longest}, {durable})"
        );
        Ok(Reply::read(&self.try_call(&call).await?[0]))
    }

    pub(crate) async fn acquire(&mut self, wanted: &Wanted) -> Reply {
        loop {
            if let Some(reply) = unlocked(wanted, self.try_acquire(wanted).await) {
                return reply;
            }
        }
    }

    /// Waits for an exclusive lock.
    pub(crate) async fn wait(&mut self, lock: &str, token: u128) -> Reply {
        self.acquire(&Wanted::new(lock, token)).await
    }

    /// Takes an exclusive lock that is free; its fence.
    pub(crate) async fn take(&mut self, lock: &str, token: u128) -> i64 {
        let reply = self.wait(lock, token).await;
        assert!(reply.is("granted"), "{reply:?}");
        reply.fence
    }

    pub(crate) async fn release(&mut self, lock: &str, token: u128) -> bool {
        self.release_with(lock, token, 0, false, 0).await
    }

    pub(crate) async fn leave(&mut self, lock: &str, token: u128) -> bool {
        self.release_with(lock, token, 0, true, 0).await
    }

    pub(crate) async fn release_with(
        &mut self,
        lock: &str,
        token: u128,
        rest: u32,
        leave: bool,
        longest: u32,
    ) -> bool {
        let (token, session) = (uuid(token), uuid(self.session));
        let call = format!("release('{lock}', {token}, {rest}, {leave}, {session}, {longest})");
        self.truth(&call).await
    }

    pub(crate) async fn renew(&mut self, lock: &str, token: u128, ttl: u32) -> bool {
        self.renew_all(&[(lock, token, ttl)]).await[0]
    }

    pub(crate) async fn renew_all(&mut self, leases: &[(&str, u128, u32)]) -> Vec<bool> {
        loop {
            if let Some(ours) = unlocked(leases, self.try_renew_all(leases).await) {
                return ours;
            }
        }
    }

    pub(crate) async fn try_renew_all(
        &mut self,
        leases: &[(&str, u128, u32)],
    ) -> Result<Vec<bool>, SqlError> {
        let names = array(leases, "text", |it| format!("'{}'", it.0));
        let tokens = array(leases, "uuid", |it| uuid(it.1));
        let ttls = array(leases, "int", |it| it.2.to_string());
        let ours = self
            .try_call(&format!("renew({names}, {tokens}, {ttls}, true)"))
            .await?;
        let ours = ours[0][0].as_deref().unwrap();
        let ours = ours.trim_matches(['{', '}']).split(',');
        Ok(ours.map(|it| it == "t").collect())
    }

    pub(crate) async fn ask(&mut self, lock: &str, tokens: &[u128]) -> Standings {
        self.ask_with(lock, tokens, LONG_MS, 0).await
    }

    pub(crate) async fn ask_with(
        &mut self,
        lock: &str,
        tokens: &[u128],
        ttl: u32,
        longest: u32,
    ) -> Standings {
        let ttls = array(tokens, "int", |_| ttl.to_string());
        let (tokens, session) = (uuids(tokens), uuid(self.session));
        let row = self
            .call(&format!(
                "ask('{lock}', {tokens}, {ttls}, {session}, {longest}, true)"
            ))
            .await
            .remove(0);
        let number = |column: usize| row[column].as_ref().map_or(0, |it| it.parse().unwrap());
        let fences = row[5]
            .as_ref()
            .map(|it| it.trim_matches(['{', '}']).split(','));
        Standings {
            left: number(0),
            holder: row[1].clone().unwrap_or_default(),
            others: number(2),
            first: usize::try_from(number(4)).unwrap(),
            fences: fences.map(|it| it.map(|fence| fence.parse().unwrap()).collect()),
        }
    }

    /// Where one token stands: its fence, 0 if it waits, or -1 if it is gone.
    pub(crate) async fn standing(&mut self, lock: &str, token: u128) -> i64 {
        self.ask(lock, &[token]).await.fences.unwrap()[0]
    }

    pub(crate) async fn try_many(
        &mut self,
        calls: &[(&str, &str, u128, u32)],
    ) -> Result<Vec<Reply>, SqlError> {
        let actions = array(calls, "text", |it| format!("'{}'", it.0));
        let names = array(calls, "text", |it| format!("'{}'", it.1));
        let tokens = array(calls, "uuid", |it| uuid(it.2));
        let whos = array(calls, "text", |_| "'1@host tests::body'".to_owned());
        let ttls = array(calls, "int", |it| it.3.to_string());
        let (session, bell) = (uuid(self.session), self.bell);
        let call = format!(
            "many({actions}, {names}, {tokens}, {whos}, {ttls}, {session}, {bell}, 0, true)"
        );
        let rows = self.try_call(&call).await?;
        Ok(rows.iter().map(|row| Reply::read(row)).collect())
    }

    pub(crate) async fn pass(&mut self, lock: &str, token: u128, fence: i64) -> bool {
        self.truth(&format!("pass('{lock}', {}, {fence})", uuid(token)))
            .await
    }

    pub(crate) async fn force(&mut self, lock: &str) -> i64 {
        let removed = self
            .call(&format!("force('{lock}', {}, 0)", uuid(self.session)))
            .await;
        removed[0][0].as_deref().unwrap().parse().unwrap()
    }

    /// What a column of the row of a lock has.
    pub(crate) async fn column(&mut self, lock: &str, column: &str) -> String {
        let sql = format!(
            "SELECT {column} FROM {}.lock WHERE name = '{lock}'",
            self.schema
        );
        self.sql.value(&sql).await
    }

    /// The grants of which this session was notified: fence, name, and tokens.
    pub(crate) async fn grants(&mut self, limit: Duration) -> Vec<(i64, String, Vec<u128>)> {
        let payloads = self.sql.notifications(limit).await.into_iter();
        let read = |payload: String| {
            let mut lines = payload.lines();
            let fence = lines.next().unwrap().parse().unwrap();
            let name = lines.next().unwrap().to_owned();
            let tokens = lines.map(|it| u128::from_str_radix(it, 16).unwrap());
            (fence, name, tokens.collect())
        };
        payloads.map(read).collect()
    }
}
