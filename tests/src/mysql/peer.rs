//! A client that sends SQL by hand, as a person would with `mysql`.

use std::{fmt, io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{Rows, TIME_LIMIT, within};

/// What a client needs: long passwords, a database, the protocol of 4.1, transactions, salted passwords, several statements and
/// results, and names of plugins.
const FLAGS: u32 = 1 | 8 | 0x200 | 0x2000 | 0x8000 | 0x1_0000 | 0x2_0000 | 0x8_0000;

/// In the status of a server: another result follows.
const MORE: u8 = 8;

/// A connection of its own.
#[derive(Debug)]
pub struct MysqlPeer {
    stream: TcpStream,
}

/// What a server says of a statement that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlError {
    /// The number, such as 1213; 0 where the connection has broken.
    pub code: u16,
    /// The SQLSTATE.
    pub state: String,
    /// A sentence.
    pub message: String,
}

impl fmt::Display for MysqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.state, self.message)
    }
}

impl From<io::Error> for MysqlError {
    fn from(error: io::Error) -> Self {
        Self {
            code: 0,
            state: String::new(),
            message: error.to_string(),
        }
    }
}

impl MysqlPeer {
    /// Connects as the superuser, who needs no password.
    pub async fn connect(addr: SocketAddr, database: &str) -> Self {
        let connected = within(TIME_LIMIT, Self::try_connect(addr, "root", database)).await;
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
    ) -> Result<Self, MysqlError> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let mut this = Self { stream };
        let greeting = this.payload().await?;
        if greeting[0] == 0xff {
            return Err(error(&greeting));
        }
        let mut hello = FLAGS.to_le_bytes().to_vec();
        hello.extend([0, 0, 0, 4, 45]);
        hello.extend([0; 23]);
        hello.extend([user.as_bytes(), &[0, 0], database.as_bytes(), &[0]].concat());
        hello.extend(b"mysql_native_password\0");
        this.send(1, &hello).await?;
        let mut said = this.payload().await?;
        if said[0] == 0xfe {
            // Another plugin, whose proof of no password is nothing too.
            this.send(3, &[]).await?;
            said = this.payload().await?;
        }
        match said[0] {
            0 => Ok(this),
            _ => Err(error(&said)),
        }
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

    /// What is there of locks that somebody has or waits for, in the database of this connection.
    pub async fn traces(&mut self) -> Vec<String> {
        let tables = self.rows("SHOW TABLES LIKE 'lock_runtime_lock'").await;
        if tables.is_empty() {
            return Vec::new();
        }
        self.column(
            "SET @now = UNIX_TIMESTAMP(SYSDATE(6)) * 1000000; \
             SELECT CONCAT('lock ', name) FROM lock_runtime_lock WHERE expires > @now \
             UNION ALL SELECT CONCAT('waiter ', name) FROM lock_runtime_waiter \
             UNION ALL SELECT CONCAT('sharer ', name) FROM lock_runtime_sharer WHERE expires > @now",
        )
        .await
    }

    /// The rows of a statement.
    ///
    /// # Errors
    ///
    /// What the server answers, or that the connection broke.
    pub async fn try_rows(&mut self, sql: &str) -> Result<Rows, MysqlError> {
        within(TIME_LIMIT, async {
            self.send(0, &[b"\x03", sql.as_bytes()].concat()).await?;
            self.answer().await
        })
        .await
    }

    async fn answer(&mut self) -> Result<Rows, MysqlError> {
        let mut rows = Rows::new();
        loop {
            let head = self.payload().await?;
            let status = match head[0] {
                0xff => return Err(error(&head)),
                // Two numbers are in front of the status.
                0 => {
                    let mut rest = &head[1..];
                    length(&mut rest);
                    length(&mut rest);
                    rest[0]
                }
                _ => self.result(&mut rows).await?,
            };
            if status & MORE == 0 {
                return Ok(rows);
            }
        }
    }

    /// Reads one result behind its number of columns; the status of the server.
    async fn result(&mut self, rows: &mut Rows) -> Result<u8, MysqlError> {
        while !is_end(&self.payload().await?) {}
        loop {
            let payload = self.payload().await?;
            if payload[0] == 0xff {
                return Err(error(&payload));
            }
            if is_end(&payload) {
                return Ok(payload[3]);
            }
            let mut rest = &payload[..];
            let mut row = Vec::new();
            while !rest.is_empty() {
                row.push(length(&mut rest).map(|count| {
                    let (value, after) = rest.split_at(count);
                    rest = after;
                    String::from_utf8_lossy(value).into_owned()
                }));
            }
            rows.push(row);
        }
    }

    async fn send(&mut self, number: u8, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).expect("a short text");
        let mut packet = length.to_le_bytes();
        packet[3] = number;
        self.stream.write_all(&[&packet, payload].concat()).await
    }

    async fn payload(&mut self) -> io::Result<Vec<u8>> {
        let header = self.stream.read_u32_le().await?;
        let mut payload = vec![0; (header & 0x00ff_ffff) as usize];
        self.stream.read_exact(&mut payload).await?;
        Ok(payload)
    }
}

fn is_end(payload: &[u8]) -> bool {
    payload[0] == 0xfe && payload.len() < 9
}

/// Reads a number whose first byte says how long it is; `None` for the mark of `NULL`.
fn length(rest: &mut &[u8]) -> Option<usize> {
    let (first, after) = rest.split_first().expect("a number");
    let count = match first {
        0xfb => 0,
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => {
            *rest = after;
            return Some((*first).into());
        }
    };
    let (number, after) = after.split_at(count);
    *rest = after;
    let number = number
        .iter()
        .rev()
        .fold(0, |sum, it| sum << 8 | usize::from(*it));
    (count > 0).then_some(number)
}

/// Reads an error.
fn error(payload: &[u8]) -> MysqlError {
    let text = String::from_utf8_lossy(&payload[3..]).into_owned();
    let (state, message) = match text.strip_prefix('#') {
        Some(text) => text.split_at(5),
        None => ("", &*text),
    };
    MysqlError {
        code: u16::from_le_bytes([payload[1], payload[2]]),
        state: state.to_owned(),
        message: message.to_owned(),
    }
}
