//! Tickets: what is left of a guard while nobody works under its lock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::ticket_id::TicketId;

/// A lock on its way from one holder to the next, which may be another process. Made by
/// [`LockGuard::into_ticket`](crate::LockGuard::into_ticket), and turned into a guard again by
/// [`LockManager::adopt`](crate::LockManager::adopt), once.
///
/// Send it as text: it is displayed, parsed, and with the feature `serde` serialised as one. Its
/// text names the lock and contains a secret: whoever has it can adopt the lock. Its `Debug`
/// output has only the first 8 of 32 digits.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// use std::time::Duration;
///
/// use lock_runtime::Ticket;
///
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let guard = locks.lock("video:7").acquire().await?;
/// let text = guard.into_ticket(Duration::from_secs(60)).await?.to_string();
/// // In another process, which got the text in a job:
/// let ticket: Ticket = text.parse()?;
/// let guard = locks.adopt(ticket).await?;
/// assert_eq!(guard.key(), "video:7");
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub(crate) key: LockKey,
    pub(crate) kind: Kind,
    pub(crate) id: TicketId,
}

/// The shortest and the longest time of a ticket.
pub(crate) const SHORTEST: Duration = Duration::from_millis(100);
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Ticket {
    /// The lock's name.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("video:7").acquire().await?;
    /// let ticket = guard.into_ticket(Duration::from_secs(60)).await?;
    /// assert_eq!(ticket.key(), "video:7");
    /// # Ok(()) }
    /// ```
    pub fn key(&self) -> &LockKey {
        &self.key
    }
}

/// The text that [`FromStr`] reads.
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Exclusive => write!(f, "{}-x-{}", self.id, self.key),
            Kind::Read => write!(f, "{}-r-{}", self.id, self.key),
            Kind::Permits(most) => write!(f, "{}-p{most}-{}", self.id, self.key),
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("key", &self.key)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl FromStr for Ticket {
    type Err = LockError;

    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if the text is not that of a ticket.
    fn from_str(text: &str) -> Result<Self, LockError> {
        read(text).ok_or_else(|| {
            LockError::invalid(
                "ticket",
                "it is not the text of a ticket: pass on what `Ticket::to_string` returned, as it is",
            )
        })
    }
}

fn read(text: &str) -> Option<Ticket> {
    let (id, rest) = text.split_once('-')?;
    let (kind, key) = rest.split_once('-')?;
    let is_hex = id.len() == 32 && id.bytes().all(|it| it.is_ascii_hexdigit());
    let id = u128::from_str_radix(id, 16).ok().filter(|_| is_hex)?;
    let kind = match kind {
        "x" => Kind::Exclusive,
        "r" => Kind::Read,
        _ => Kind::Permits(kind.strip_prefix('p')?.parse().ok().filter(|it| *it > 0)?),
    };
    Some(Ticket {
        key: LockKey::read_escaped(key).ok()?,
        kind,
        id: TicketId(id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_ticket_reads_as_the_ticket_and_its_debug_output_has_no_secret() {
        for kind in [Kind::Exclusive, Kind::Read, Kind::Permits(4)] {
            let ticket = Ticket {
                key: LockKey::of("video-7:a%"),
                kind,
                id: TicketId::new().expect("random numbers"),
            };
            let text = ticket.to_string();
            assert_eq!(text.parse::<Ticket>().ok(), Some(ticket.clone()), "{text}");
            let shown = format!("{ticket:?} {:?}", ticket.id);
            assert!(!shown.contains(&ticket.id.to_string()), "{shown}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let id = TicketId(7);
        for text in [
            String::new(),
            "video".into(),
            format!("{id}-x-"),
            format!("{id}-p0-video"),
            format!("{id}-w-video"),
            format!("{id}-x-50%"),
            format!("+{}-x-video", &id.to_string()[1..]),
        ] {
            let refused = text.parse::<Ticket>();
            assert!(
                matches!(refused, Err(LockError::InvalidOptions { .. })),
                "{text}"
            );
        }
    }
}
