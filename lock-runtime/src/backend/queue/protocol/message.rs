//! Pushed messages, and how they are written: servers push grants, connections the others.

use std::fmt;
use std::time::Duration;

use crate::backend::token::Token;
use crate::types::key::LockKey;

/// The lock was handed to one of us.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grant {
    pub(crate) token: Token,
    pub(crate) fence: u64,
    /// The full name of the owner key, which has line feeds where it is the text of a plain name.
    pub(crate) owner: Box<str>,
    /// The name of the acquisition on the server.
    pub(crate) name: Box<str>,
    /// Those to whom it is to be handed over, under the numbers behind this one.
    pub(crate) followers: Vec<Token>,
}

impl Grant {
    /// The lock that was handed over, where its name stands in braces.
    pub(crate) fn key(&self) -> Option<LockKey> {
        let (_, rest) = self.owner.split_once('{')?;
        rest.strip_suffix('}').map(LockKey::unchecked)
    }
}

/// One message, written with each field on a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Granted(Grant),
    /// The lock was revoked by force.
    Revoked(Token),
    /// The holders with these tokens are to report on this channel.
    Asked {
        channel: Box<str>,
        tokens: Vec<Token>,
    },
    /// The same, and somebody would like to have their locks.
    Wanted {
        channel: Box<str>,
        tokens: Vec<Token>,
    },
    /// The answer to both.
    Told {
        token: Token,
        fence: u64,
        held: Duration,
        /// How many it is to be handed over to.
        followers: usize,
        /// The names of those among them that hold other locks.
        nested: Vec<Box<str>>,
    },
}

impl Message {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(text).ok()?.split('\n');
        let first = lines.next()?;
        Some(match first {
            "revoked" => Self::Revoked(Token::parse(lines.next()?)?),
            "asked" => Self::Asked {
                channel: lines.next()?.into(),
                tokens: lines.map(Token::parse).collect::<Option<_>>()?,
            },
            "wanted" => Self::Wanted {
                channel: lines.next()?.into(),
                tokens: lines.map(Token::parse).collect::<Option<_>>()?,
            },
            "told" => Self::Told {
                token: Token::parse(lines.next()?)?,
                fence: lines.next()?.parse().ok()?,
                held: Duration::from_millis(lines.next()?.parse().ok()?),
                followers: lines.next().and_then(|it| it.parse().ok()).unwrap_or(0),
                nested: lines.map(Into::into).collect(),
            },
            fence => {
                let (fence, feeds) = fence.split_once(' ').unwrap_or((fence, "0"));
                let (fence, feeds) = (fence.parse().ok()?, feeds.parse().ok()?);
                let mut owner = lines.next()?.to_owned();
                for _ in 0_usize..feeds {
                    owner.push('\n');
                    owner.push_str(lines.next()?);
                }
                let name = lines.next()?;
                Self::Granted(Grant {
                    token: Token::parse(name)?,
                    fence,
                    owner: owner.into(),
                    name: name.into(),
                    followers: lines.map(Token::parse).collect::<Option<_>>()?,
                })
            }
        })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(grant) => {
                let Grant {
                    fence, owner, name, ..
                } = grant;
                match owner.matches('\n').count() {
                    0 => write!(f, "{fence}\n{owner}\n{name}")?,
                    feeds => write!(f, "{fence} {feeds}\n{owner}\n{name}")?,
                }
                let mut followers = grant.followers.iter();
                followers.try_for_each(|token| write!(f, "\n{token}"))
            }
            Self::Revoked(token) => write!(f, "revoked\n{token}"),
            Self::Asked { channel, tokens } => {
                write!(f, "asked\n{channel}")?;
                tokens.iter().try_for_each(|token| write!(f, "\n{token}"))
            }
            Self::Wanted { channel, tokens } => {
                write!(f, "wanted\n{channel}")?;
                tokens.iter().try_for_each(|token| write!(f, "\n{token}"))
            }
            Self::Told {
                token,
                fence,
                held,
                followers,
                nested,
            } => {
                let held = held.as_millis();
                write!(f, "told\n{token}\n{fence}\n{held}\n{followers}")?;
                nested.iter().try_for_each(|name| write!(f, "\n{name}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_as_it_was_written() {
        let token = Token::new().expect("random numbers");
        let grant = Grant {
            token,
            fence: 7,
            owner: "lock:{a}".into(),
            name: format!("{token} 1@host shop::buy").into(),
            followers: vec![token; 2],
        };
        let plain = Grant {
            owner: format!("a\nb\n\n{token}").into(),
            ..grant.clone()
        };
        for message in [
            Message::Granted(grant),
            Message::Granted(plain),
            Message::Revoked(token),
            Message::Asked {
                channel: "lock:grant:1".into(),
                tokens: vec![token; 3],
            },
            Message::Wanted {
                channel: "lock:grant:1".into(),
                tokens: vec![token; 2],
            },
            Message::Told {
                token,
                fence: 7,
                held: Duration::from_millis(42),
                followers: 3,
                nested: vec![format!("{token} 1@host").into(); 2],
            },
        ] {
            let text = message.to_string();
            assert_eq!(Message::parse(text.as_bytes()), Some(message));
        }
        let short = format!("7 2\na\n{token}");
        for text in [
            "",
            "7",
            "7\nlock:{a}\nnobody",
            &short,
            "revoked",
            "told\n1",
            "?\n?",
        ] {
            assert_eq!(Message::parse(text.as_bytes()), None, "{text}");
        }
    }
}
