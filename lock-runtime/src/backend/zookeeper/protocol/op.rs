//! The operations that are asked of the server, and how they are written.

use super::jute::Writer;
use super::reply::Expected;

/// Whatever version a node has.
pub(crate) const ANY: i32 = -1;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Create {
        path: String,
        data: Vec<u8>,
        mode: Mode,
    },
    Delete {
        path: String,
    },
    /// The data of a node, and a message about its next change.
    Read {
        path: String,
        watch: bool,
    },
    /// The names of a node's children, and a message about the next change of them.
    Children {
        path: String,
        watch: bool,
    },
    Write {
        path: String,
        data: Vec<u8>,
        /// How often it was written before, or [`ANY`].
        version: i32,
    },
    /// Lets the server catch up with its leader.
    Sync {
        path: String,
    },
    /// Several that create and delete nodes, of which all are done or none.
    Multi(Vec<Self>),
    /// Continues the watches of another connection, with the events that it has missed.
    Watch {
        seen: i64,
        data: Vec<String>,
        children: Vec<String>,
    },
    Ping,
    /// Ends the session, and all nodes that it owns.
    Close,
}

/// How long a node stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Persistent = 0,
    /// Until its session ends.
    Ephemeral = 1,
    /// Until its session ends; the server adds a number to its name.
    Sequential = 3,
    /// Until its last child has gone.
    Container = 4,
}

/// The users that may use a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Everybody,
    /// The user who has created it.
    Creator,
}

/// The numbers of requests that have none of their own.
const PING: i32 = -2;
const WATCH: i32 = -8;

impl Op {
    /// Writes it as request `number`; gives out the number of its answer, too.
    pub(crate) fn encode(&self, number: i32, access: Access) -> (i32, Vec<u8>) {
        let number = match self {
            Self::Ping => PING,
            Self::Watch { .. } => WATCH,
            _ => number,
        };
        let mut writer = Writer::new();
        writer.int(number);
        writer.int(self.code());
        self.write(&mut writer, access);
        (number, writer.finish())
    }

    /// Writes what follows its code.
    fn write(&self, writer: &mut Writer, access: Access) {
        match self {
            Self::Create { path, data, mode } => create(writer, path, data, *mode, access),
            Self::Delete { path } => {
                writer.bytes(path.as_bytes());
                writer.int(-1);
            }
            Self::Read { path, watch } | Self::Children { path, watch } => {
                writer.bytes(path.as_bytes());
                writer.bool(*watch);
            }
            Self::Write {
                path,
                data,
                version,
            } => {
                writer.bytes(path.as_bytes());
                writer.bytes(data);
                writer.int(*version);
            }
            Self::Sync { path } => writer.bytes(path.as_bytes()),
            Self::Multi(parts) => {
                for part in parts {
                    head(writer, part.code(), false);
                    part.write(writer, access);
                }
                head(writer, -1, true);
            }
            Self::Watch {
                seen,
                data,
                children,
            } => {
                writer.long(*seen);
                writer.texts(data);
                writer.texts(&[]);
                writer.texts(children);
            }
            Self::Ping | Self::Close => {}
        }
    }

    /// About how many bytes it takes as one of several.
    pub(crate) fn bytes(&self) -> usize {
        const HEADS: usize = 64;
        let content = match self {
            Self::Create { path, data, .. } => path.len() + data.len(),
            Self::Delete { path } => path.len(),
            _ => 0,
        };
        HEADS + content
    }

    fn code(&self) -> i32 {
        match self {
            Self::Create {
                mode: Mode::Container,
                ..
            } => 19,
            Self::Create { .. } => 1,
            Self::Delete { .. } => 2,
            Self::Read { .. } => 4,
            Self::Write { .. } => 5,
            Self::Sync { .. } => 9,
            Self::Ping => 11,
            Self::Children { .. } => 12,
            Self::Multi(_) => 14,
            Self::Watch { .. } => 101,
            Self::Close => -11,
        }
    }

    /// The parts of its answer.
    pub(crate) fn expected(&self) -> Expected {
        match self {
            Self::Create { .. } => Expected::Created,
            Self::Read { .. } => Expected::Data,
            Self::Children { .. } => Expected::Children,
            Self::Write { .. } => Expected::Stat,
            Self::Multi(_) => Expected::Parts,
            Self::Delete { .. }
            | Self::Sync { .. }
            | Self::Watch { .. }
            | Self::Ping
            | Self::Close => Expected::Nothing,
        }
    }
}

fn create(writer: &mut Writer, path: &str, data: &[u8], mode: Mode, access: Access) {
    const ALL: i32 = 31;
    writer.bytes(path.as_bytes());
    writer.bytes(data);
    writer.length(1);
    writer.int(ALL);
    let (scheme, id) = match access {
        Access::Everybody => ("world", "anyone"),
        Access::Creator => ("auth", ""),
    };
    writer.bytes(scheme.as_bytes());
    writer.bytes(id.as_bytes());
    writer.int(mode as i32);
}

/// The head of an operation among several.
fn head(writer: &mut Writer, code: i32, last: bool) {
    writer.int(code);
    writer.bool(last);
    writer.int(-1);
}
