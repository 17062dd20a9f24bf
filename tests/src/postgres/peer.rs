//! A client that sends SQL by hand, as a person would with `psql`.

use std::{collections::HashMap, fmt, io, mem, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{TIME_LIMIT, within};

/// The protocol's version: 3.0.
const VERSION: u32 = 3 << 16;

/// The rows of an answer, with their columns as text.
pub type Rows = Vec<Vec<Option<String>>>;

/// A connection of its own.
#[derive(Debug)]
pub struct PostgresPeer {
    stream: TcpStream,
    notified: Vec<String>,
}

/// What a server says of a statement that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// Five characters, such as `40001`; `08006` where the connection has broken.
    pub code: String,
    /// A sentence.
    pub message: String,
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl From<io::Error> for SqlError {
    fn from(error: io::Error) -> Self {
        Self {
            code: "08006".to_owned(),
            message: error.to_string(),
        }
    }
}

impl PostgresPeer {
    /// Connects as the superuser, who needs no password.
    pub async fn connect(addr: SocketAddr) -> Self {
        let connected = within(TIME_LIMIT, Self::try_connect(addr, "postgres", "postgres")).await;
        connected.unwrap_or_else(|error| panic!("cannot look at the server: {error}"))
    }

    /// Connects as a user who needs no password.
    ///
    /// # Errors
    ///
    /// What the server answers, or that it cannot be reached.
    pub async fn try_connect(
        addr: SocketAddr,
        user: &str,
        database: &str,
    ) -> Result<Self, SqlError> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let notified = Vec::new();
        let mut this = Self { stream, notified };
        let mut hello = VERSION.to_be_bytes().to_vec();
        for word in ["user", user, "database", database, ""] {
            hello.extend(word.as_bytes());
            hello.push(0);
        }
        this.stream.write_all(&packet(&hello)).await?;
        this.answer().await?;
        Ok(this)
    }

    /// The rows of a statement, or of several; panics if one fails.
    pub async fn rows(&mut self, sql: &str) -> Rows {
        self.try_rows(sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The first column of the first row.
    pub async fn value(&mut self, sql: &str) -> String {
        let value = self.rows(sql).await.into_iter().flatten().next();
        value.flatten().unwrap_or_else(|| panic!("{sql}: no value"))
    }

    /// The first columns of all rows; what is null is left out.
    pub async fn column(&mut self, sql: &str) -> Vec<String> {
        let rows = self.rows(sql).await.into_iter();
        rows.filter_map(|row| row.into_iter().next().flatten())
            .collect()
    }

    /// The rows of a statement.
    ///
    /// # Errors
    ///
    /// What the server answers, or that the connection broke.
    pub async fn try_rows(&mut self, sql: &str) -> Result<Rows, SqlError> {
        let query = [sql.as_bytes(), &[0]].concat();
        within(TIME_LIMIT, async {
            self.stream.write_all(b"Q").await?;
            self.stream.write_all(&packet(&query)).await?;
            self.answer().await
        })
        .await
    }

    /// Sends statements in one write, and disconnects when the first one is answered.
    pub async fn leave_after_one_of(mut self, statements: &[&str]) {
        let query = |sql: &&str| [b"Q", &packet(&[sql.as_bytes(), &[0]].concat())[..]].concat();
        let queries: Vec<_> = statements.iter().flat_map(query).collect();
        let first = within(TIME_LIMIT, async {
            self.stream.write_all(&queries).await?;
            self.answer().await
        });
        first.await.expect("an answer");
    }

    /// The payloads of notifications that have come, or the first to come in this time.
    pub async fn notifications(&mut self, limit: Duration) -> Vec<String> {
        let mut byte = [0];
        if self.notified.is_empty() && timeout(limit, self.stream.peek(&mut byte)).await.is_ok() {
            // Only notifications come without being asked for, unless the connection breaks.
            let _ = within(TIME_LIMIT, self.message()).await;
        }
        mem::take(&mut self.notified)
    }

    /// The rows until the server is ready again.
    async fn answer(&mut self) -> Result<Rows, SqlError> {
        let mut rows = Rows::new();
        let mut failed = None;
        loop {
            let (kind, body) = self.message().await?;
            match kind {
                b'D' => rows.push(row(&body)),
                b'E' => {
                    let error = error(&body);
                    // The last word on a connection that the server closes.
                    if error.code.starts_with("57P") || error.code.starts_with("28") {
                        return Err(error);
                    }
                    failed = Some(error);
                }
                b'R' if body[..4] != [0; 4] => panic!("the server asks for a password"),
                b'Z' => return failed.map_or(Ok(rows), Err),
                _ => {}
            }
        }
    }

    async fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let kind = self.stream.read_u8().await?;
        let length = self.stream.read_u32().await?;
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body).await?;
        if kind == b'A' {
            // Behind a process id and the channel.
            let payload = body[4..].split(|byte| *byte == 0).nth(1);
            let payload = String::from_utf8_lossy(payload.unwrap_or_default());
            self.notified.push(payload.into_owned());
        }
        Ok((kind, body))
    }
}

/// Writes a message behind its length.
fn packet(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short text");
    [&length.to_be_bytes(), body].concat()
}

/// Reads the columns of a row.
fn row(body: &[u8]) -> Vec<Option<String>> {
    let (_columns, mut rest) = body.split_at(2);
    let mut row = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        // A negative length says that there is no value.
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let (value, after) = after.split_at(length.unwrap_or(0));
        row.push(length.map(|_| String::from_utf8_lossy(value).into_owned()));
        rest = after;
    }
    row
}

/// Reads the fields of an error.
fn error(body: &[u8]) -> SqlError {
    let fields = body.split(|byte| *byte == 0);
    let fields: HashMap<_, _> = fields.filter_map(<[u8]>::split_first).collect();
    let field = |name| {
        let text = fields.get(&name).copied().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    SqlError {
        code: field(b'C'),
        message: field(b'M'),
    }
}
