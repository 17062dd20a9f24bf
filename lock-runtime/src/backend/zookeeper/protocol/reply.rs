//! The answers and reports of the server, and their decoding.

use super::jute::{Malformed, Reader};

/// The number that messages have, which answer no request.
const MESSAGE: i32 = -1;

/// One packet of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    Answer(Answer<'a>),
    Message(Message),
}

/// The answer to a request, whose kind tells how to read it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer<'a> {
    pub(crate) number: i32,
    /// The last change that the server knows; zero or less if it does not say.
    pub(crate) zxid: i64,
    error: i32,
    rest: &'a [u8],
}

/// A message about something that was watched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) change: Change,
    pub(crate) path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Deleted,
    /// Its data.
    Written,
    Children,
    /// Of the session, or of a kind that nobody watches.
    Other,
}

/// The parts of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Created,
    Data,
    Children,
    Stat,
    /// One answer for each of several operations.
    Parts,
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Created {
        path: String,
    },
    Data {
        data: Vec<u8>,
        stat: Stat,
    },
    Children {
        names: Vec<String>,
        /// The number of the last change of them.
        changed: i64,
    },
    Stat(Stat),
    /// The answers to several operations, in their order.
    Parts(Vec<Reply>),
    Done,
}

/// The server's facts about a node beside its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The number of the change that created it.
    pub(crate) czxid: i64,
    /// The number of the last change of its children.
    pub(crate) pzxid: i64,
    /// When it was created and last written, in milliseconds by the leader's clock.
    pub(crate) created: i64,
    pub(crate) written: i64,
    /// How often it was written.
    pub(crate) version: i32,
    /// The session that it ends with; zero for none.
    pub(crate) owner: i64,
}

/// The reason why the server refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("there is no such node")]
    NoNode,
    #[error("the node was written meanwhile")]
    Written,
    #[error("the node exists already")]
    NodeExists,
    #[error(
        "the user has no right to the nodes of the locks: check the ACL, and user and password in the URL"
    )]
    NoRight,
    #[error("the session has ended")]
    SessionOver,
    /// It was not carried out, and may be if it is sent again.
    #[error("the servers are overloaded, and refuse requests for now")]
    Busy,
    #[error("the nodes of the locks have reached their quota")]
    QuotaExceeded,
    #[error("the server has refused a request with error {0}")]
    Other(i32),
}

impl Trouble {
    fn from_code(code: i32) -> Self {
        match code {
            -101 => Self::NoNode,
            -103 => Self::Written,
            -110 => Self::NodeExists,
            -102 | -115 => Self::NoRight,
            // Moved: another connection has taken the session over.
            -112 | -118 => Self::SessionOver,
            -125 => Self::QuotaExceeded,
            -127 => Self::Busy,
            other => Self::Other(other),
        }
    }
}

/// Reads a packet without its length.
pub(crate) fn read(packet: &[u8]) -> Result<Packet<'_>, Malformed> {
    let mut reader = Reader::new(packet);
    let (number, zxid, error) = (reader.int()?, reader.long()?, reader.int()?);
    if number != MESSAGE {
        let rest = &packet[16..];
        return Ok(Packet::Answer(Answer {
            number,
            zxid,
            error,
            rest,
        }));
    }
    let change = match reader.int()? {
        2 => Change::Deleted,
        3 => Change::Written,
        4 => Change::Children,
        _ => Change::Other,
    };
    let _state = reader.int()?;
    let path = reader.text()?;
    Ok(Packet::Message(Message { change, path }))
}

impl Answer<'_> {
    /// Reads what follows its head.
    pub(crate) fn reply(&self, expected: Expected) -> Result<Result<Reply, Trouble>, Malformed> {
        if self.error != 0 {
            return Ok(Err(Trouble::from_code(self.error)));
        }
        let mut reader = Reader::new(self.rest);
        Ok(Ok(match expected {
            Expected::Created => Reply::Created {
                path: reader.text()?,
            },
            Expected::Data => Reply::Data {
                data: reader.bytes()?.to_vec(),
                stat: stat(&mut reader)?,
            },
            Expected::Children => Reply::Children {
                names: reader.texts()?,
                changed: stat(&mut reader)?.pzxid,
            },
            Expected::Stat => Reply::Stat(stat(&mut reader)?),
            Expected::Parts => return parts(&mut reader),
            Expected::Nothing => Reply::Done,
        }))
    }
}

/// If one operation of several is refused, each has an error: zero before it, and
/// `NOT_RUN` after it.
fn parts(reader: &mut Reader<'_>) -> Result<Result<Reply, Trouble>, Malformed> {
    const ERROR: i32 = -1;
    const CREATED: i32 = 1;
    const DELETED: i32 = 2;
    const WRITTEN: i32 = 5;
    const NOT_RUN: i32 = -2;
    let mut trouble = None;
    let mut replies = Vec::new();
    loop {
        let (kind, last, _error) = (reader.int()?, reader.bool()?, reader.int()?);
        if last {
            return Ok(trouble.map_or(Ok(Reply::Parts(replies)), Err));
        }
        match kind {
            ERROR => {
                let code = reader.int()?;
                if code != 0 && code != NOT_RUN {
                    trouble = Some(Trouble::from_code(code));
                }
            }
            CREATED => replies.push(Reply::Created {
                path: reader.text()?,
            }),
            DELETED => replies.push(Reply::Done),
            WRITTEN => replies.push(Reply::Stat(stat(reader)?)),
            // Its length is not known, so neither is the start of the next one.
            _ => return Err(Malformed),
        }
    }
}

fn stat(reader: &mut Reader<'_>) -> Result<Stat, Malformed> {
    let (czxid, _mzxid) = (reader.long()?, reader.long()?);
    let (created, written) = (reader.long()?, reader.long()?);
    let (version, _cversion, _aversion) = (reader.int()?, reader.int()?, reader.int()?);
    let owner = reader.long()?;
    let (_length, _children, pzxid) = (reader.int()?, reader.int()?, reader.long()?);
    Ok(Stat {
        czxid,
        pzxid,
        created,
        written,
        version,
        owner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to several operations, of these kinds and contents.
    fn several(parts: &[(i32, Vec<u8>)]) -> Vec<u8> {
        let head = |kind: i32, last: u8, error: i32| {
            [&kind.to_be_bytes()[..], &[last], &error.to_be_bytes()].concat()
        };
        let parts = parts.iter();
        let mut bytes = parts.fold(Vec::new(), |bytes, (kind, content)| {
            [bytes, head(*kind, 0, 0), content.clone()].concat()
        });
        bytes.extend(head(-1, 1, -1));
        bytes
    }

    // Section: guarantees.md#from-writer-to-reader
    #[test]
    fn the_answer_to_a_write_among_others_is_read_to_its_end() {
        // In the first epoch of an ensemble, it begins as the head of a created node would.
        let czxid: i64 = 0x1_0000_0005;
        let written = [czxid.to_be_bytes().to_vec(), vec![0; 60]].concat();
        let created = [&2_i32.to_be_bytes()[..], b"/r"].concat();
        let bytes = several(&[(5, written), (2, Vec::new()), (1, created)]);
        let replies = parts(&mut Reader::new(&bytes)).expect("it is well-formed");
        let Ok(Reply::Parts(replies)) = replies else {
            panic!("{replies:?}");
        };
        assert!(
            matches!(&replies[..], [Reply::Stat(stat), Reply::Done, Reply::Created { path }]
                if stat.czxid == czxid && path == "/r"),
            "{replies:?}"
        );
        let unknown = several(&[(99, Vec::new())]);
        assert!(parts(&mut Reader::new(&unknown)).is_err());
    }
}
