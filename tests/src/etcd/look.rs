//! Looks at a member through its JSON gateway.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::EtcdServer;
use crate::unique;

/// An election may come first, on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(60);
const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What became of a key.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: String,
    /// The revision that made it, and its value; `None` if it was deleted.
    pub(crate) written: Option<(u64, String)>,
}

impl Change {
    fn read(json: &str) -> Self {
        let json = &json[..json.find('}').expect("the end of a key")];
        let number = |name| values(json, name).next().map(|it| it.parse().expect(name));
        let text = |name| {
            let bytes = values(json, name).next().map(decode).unwrap_or_default();
            String::from_utf8(bytes).expect("text")
        };
        Self {
            revision: number("mod_revision").expect("a revision"),
            key: text("key"),
            written: number("create_revision").map(|made| (made, text("value"))),
        }
    }
}

impl EtcdServer {
    /// The keys that begin so, sorted.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let mut end = prefix.as_bytes().to_vec();
        *end.last_mut().expect("a prefix") += 1;
        let body = format!(
            r#"{{"key":"{}","range_end":"{}","keys_only":true}}"#,
            encode(prefix.as_bytes()),
            encode(&end)
        );
        let answer = self.ask("kv/range", &body).await.expect("an answer");
        let keys = values(&answer, "key").map(|key| String::from_utf8(decode(key)));
        keys.collect::<Result<_, _>>().expect("text")
    }

    /// Writes a key.
    pub async fn put(&self, key: &str, value: &str) {
        let (key, value) = (encode(key.as_bytes()), encode(value.as_bytes()));
        let body = format!(r#"{{"key":"{key}","value":"{value}"}}"#);
        self.ask("kv/put", &body).await.expect("an answer");
    }

    /// Deletes a key.
    pub async fn delete(&self, key: &str) {
        let body = format!(r#"{{"key":"{}"}}"#, encode(key.as_bytes()));
        self.ask("kv/deleterange", &body).await.expect("an answer");
    }

    /// Ends the leases whose markers begin so.
    pub async fn revoke_leases(&self, prefix: &str) {
        for marker in self.keys(prefix).await {
            let id = marker.strip_prefix(prefix).expect("the prefix");
            let id = i64::from_str_radix(id, 16).expect("the number of a lease");
            let body = format!(r#"{{"ID":"{id}"}}"#);
            self.ask("lease/revoke", &body).await.expect("an answer");
        }
    }

    /// Whether it ends leases, as a former leader, that the next one has renewed: before 3.4.31, and in 3.5 before
    /// 3.5.13.
    pub async fn ends_leases_of_others(&self) -> bool {
        let answer = self.ask("maintenance/status", "{}").await;
        let answer = answer.expect("an answer");
        let version = values(&answer, "version").next().expect("a version");
        let numbers: Vec<u32> = version
            .split('.')
            .filter_map(|it| it.parse().ok())
            .collect();
        match numbers[..] {
            [3, 4, patch] => patch < 31,
            [3, 5, patch] => patch < 13,
            _ => false,
        }
    }

    /// The revision of its data.
    pub async fn revision(&self) -> u64 {
        let answer = self.ask("maintenance/status", "{}").await;
        let answer = answer.expect("an answer");
        let revision = values(&answer, "revision").next().expect("a revision");
        revision.parse().expect("a number")
    }

    /// All that was done since the first revision to keys that begin so, in its order.
    pub(crate) async fn changes(&self, prefix: &str) -> Vec<Change> {
        let last = unique(format!("{prefix}/last"));
        self.put(&last, "").await;
        let mut end = prefix.as_bytes().to_vec();
        *end.last_mut().expect("a prefix") += 1;
        let (key, end) = (encode(prefix.as_bytes()), encode(&end));
        let body = format!(
            r#"{{"create_request":{{"key":"{key}","range_end":"{end}","start_revision":"1"}}}}"#
        );
        // To this version of HTTP a member answers in lines of JSON, without anything between them.
        let request = format!(
            "POST /v3/watch HTTP/1.0\r\nHost: etcd\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut changes = Vec::new();
        let read = async {
            let mut stream = TcpStream::connect((self.host, self.port)).await?;
            stream.write_all(request.as_bytes()).await?;
            let mut lines = BufReader::new(stream).lines();
            while let Some(line) = lines.next_line().await? {
                changes.extend(line.split(r#""kv":{"#).skip(1).map(Change::read));
                // More may have been done meanwhile.
                if let Some(end) = changes.iter().position(|it: &Change| it.key == last) {
                    changes.truncate(end);
                    return Ok(());
                }
            }
            Err(io::ErrorKind::UnexpectedEof.into())
        };
        let read: io::Result<()> = timeout(TIME_LIMIT, read).await.expect("an answer in time");
        read.expect("all changes");
        changes
    }

    /// Forgets what the keys were before now.
    pub async fn compact(&self) {
        let revision = self.revision().await;
        let body = format!(r#"{{"revision":"{revision}","physical":true}}"#);
        self.ask("kv/compaction", &body).await.expect("an answer");
    }

    /// Sends a request of the API in JSON; `None` if there is no answer.
    pub async fn ask(&self, path: &str, body: &str) -> Option<String> {
        self.ask_with("", path, body).await
    }

    /// The same with more lines of headers.
    pub async fn ask_with(&self, headers: &str, path: &str, body: &str) -> Option<String> {
        let length = body.len();
        let request = format!(
            "POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.http(self.port, &request).await
    }

    /// How many calls of a method it has answered.
    pub async fn answered(&self, method: &str) -> u64 {
        let method = format!(r#"grpc_code="OK",grpc_method="{method}""#);
        self.count("grpc_server_handled_total{", &method).await
    }

    /// How many bytes it has sent to clients that speak gRPC.
    pub async fn sent(&self) -> u64 {
        self.count("etcd_network_client_grpc_sent_bytes_total ", "")
            .await
    }

    /// The sum of a metric, over the labels in which `text` stands.
    async fn count(&self, metric: &str, text: &str) -> u64 {
        let request = "GET /metrics HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n";
        let answer = self.http(self.health, request).await.expect("an answer");
        let lines = answer.lines().filter(|it| it.starts_with(metric));
        let lines = lines.filter(|it| it.contains(text));
        let counts = lines.map(|it| it.rsplit(' ').next()?.parse::<f64>().ok());
        let count = counts.sum::<Option<f64>>().expect("numbers");
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number of no great size"
        )]
        let whole = count as u64;
        whole
    }

    /// Whether it knows a leader.
    pub(super) async fn is_healthy(&self) -> bool {
        let request = "GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n";
        let answer = self.http(self.health, request).await;
        answer.is_some_and(|answer| answer.contains(r#""health":"true""#))
    }

    /// Its number, and that of the leader that it knows.
    pub(super) async fn id_and_leader(&self) -> Option<(String, String)> {
        let answer = self.ask("maintenance/status", "{}").await?;
        let id = values(&answer, "member_id").next()?.to_owned();
        let leader = values(&answer, "leader").next()?.to_owned();
        Some((id, leader))
    }

    async fn http(&self, port: u16, request: &str) -> Option<String> {
        let asked = async {
            let mut stream = TcpStream::connect((self.host, port)).await.ok()?;
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.ok()?;
            Some(answer)
        };
        timeout(TIME_LIMIT, asked).await.ok().flatten()
    }
}

/// The values of a name in JSON, where none has a quotation mark in it.
fn values<'a>(json: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(r#""{name}":""#);
    let parts: Vec<_> = json
        .split(&*start)
        .skip(1)
        .map(|it| {
            let end = it.find('"').expect("the end of a text");
            &it[..end]
        })
        .collect();
    parts.into_iter()
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..part.len()].copy_from_slice(part);
        let [a, b, c] = group.map(u32::from);
        let bits = (a << 16) | (b << 8) | c;
        for at in 0..4_usize {
            let digit = (bits >> (18 - 6 * at)) & 63;
            let is_there = at <= part.len();
            text.push(if is_there {
                char::from(DIGITS[digit as usize])
            } else {
                '='
            });
        }
    }
    text
}

fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.bytes().take_while(|c| *c != b'=') {
        let digit = DIGITS.iter().position(|it| *it == c).expect("a digit");
        bits = (bits << 6) | u32::try_from(digit).expect("less than 64");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 255).expect("a byte"));
        }
    }
    bytes
}
