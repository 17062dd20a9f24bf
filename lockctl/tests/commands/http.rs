//! A client that speaks just enough HTTP for the pages of `serve` and for browser drivers.

use serde_json::Value;
use tests::{TIME_LIMIT, within};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// What a server has answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends a request, and reads all of the answer.
pub(crate) async fn send(address: &str, request: &str, headers: &str, body: &str) -> Answer {
    let mut stream = open(address, request, headers, body).await;
    let read = async {
        let mut lines = BufReader::new(&mut stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(
                lines.read_line(&mut head).await.unwrap() > 0,
                "no answer: {head}"
            );
        }
        // A driver does not close the connection.
        let head = head.to_lowercase();
        let mut fields = head.lines();
        let length = fields.find_map(|it| it.strip_prefix("content-length:"));
        let mut body = vec![0; length.map_or(0, |it| it.trim().parse().unwrap())];
        lines.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    };
    let (head, body) = within(TIME_LIMIT, read).await;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body }
}

pub(crate) async fn get(address: &str, path: &str) -> Answer {
    send(address, &format!("GET {path}"), "", "").await
}

async fn open(address: &str, request: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let host = if headers.contains("Host:") {
        String::new()
    } else {
        format!("Host: {address}\r\n")
    };
    let length = body.len();
    let text = format!(
        "{request} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Server-sent events.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    pub(crate) async fn from(address: &str, path: &str) -> Self {
        Self(BufReader::new(
            open(address, &format!("GET {path}"), "", "").await,
        ))
    }

    /// The next line of data that has this in it.
    pub(crate) async fn with(&mut self, part: &str) -> String {
        let find = async {
            loop {
                let mut line = String::new();
                assert!(
                    self.0.read_line(&mut line).await.unwrap() > 0,
                    "the stream has ended"
                );
                if line.starts_with("data:") && line.contains(part) {
                    return line;
                }
            }
        };
        within(TIME_LIMIT, find).await
    }
}

/// A call of a browser driver.
pub(crate) async fn drive(address: &str, request: &str, body: &Value) -> Value {
    let json = "Content-Type: application/json\r\n";
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let answer = send(address, request, json, &body).await;
    let mut value: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(answer.status, 200, "{request}: {value}");
    value["value"].take()
}
