//! The names and the data of the nodes that hold a lock or wait for it.

use std::fmt;
use std::time::Duration;

use super::reply::Stat;
use crate::backend::name;
use crate::backend::queue_order;
use crate::backend::share::Share;
use crate::backend::token::Token;
use crate::types::holder::Holder;
use crate::types::kind::Kind;
use crate::types::ticket_id::TicketId;

/// A node in the queue of a lock: `{share}-{token}-{number}`. After it stands `-rest` if its holder
/// has released the lock and the lock cools down, or `-ticket` if a ticket with that number as
/// token keeps the lock closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) share: Share,
    pub(crate) token: Token,
    /// The server's, in the order of arrival. It may pass the largest number.
    number: i32,
    pub(crate) keeper: Keeper,
}

/// What keeps a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
    Session,
    Cooldown,
    Ticket,
}

impl Entry {
    /// The name without its number, which the server adds.
    pub(crate) fn stem(share: Share, token: Token) -> String {
        format!("{share}-{token}-")
    }

    /// `None` for a foreign node.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        // Else a call would name another node.
        Self::read(name).filter(|it| it.to_string() == name)
    }

    fn read(name: &str) -> Option<Self> {
        let is_kept = |keeper: Keeper| Some((name.strip_suffix(keeper.suffix())?, keeper));
        let (name, keeper) = is_kept(Keeper::Cooldown)
            .or_else(|| is_kept(Keeper::Ticket))
            .unwrap_or((name, Keeper::Session));
        let (share, name) = name.split_once('-')?;
        let (token, number) = name.split_once('-')?;
        Some(Self {
            share: Share::parse(share)?,
            token: Token::parse(token)?,
            number: number.parse().ok()?,
            keeper,
        })
    }

    /// The same after the release by its holder.
    pub(crate) fn cooldown(self) -> Self {
        Self {
            keeper: Keeper::Cooldown,
            ..self
        }
    }

    /// The same while a ticket of its holder keeps the lock closed.
    pub(crate) fn ticket(self, ticket: TicketId) -> Self {
        Self {
            token: Token::of_ticket(ticket),
            keeper: Keeper::Ticket,
            ..self
        }
    }

    /// The same of a writer that is a reader now.
    pub(crate) fn downgraded(self) -> Self {
        Self {
            share: Kind::Read.into(),
            ..self
        }
    }

    /// The same of an adopter.
    pub(crate) fn adopted(self, token: Token) -> Self {
        Self {
            token,
            keeper: Keeper::Session,
            ..self
        }
    }

    /// Whether it is that of a ticket for a lock of this kind.
    pub(crate) fn is_of_ticket(self, ticket: TicketId, kind: Kind) -> bool {
        self.keeper == Keeper::Ticket
            && self.share.kind == kind
            && self.token == Token::of_ticket(ticket)
    }

    /// Whether it stays for a time that it says, and not as long as a session.
    pub(crate) fn is_timed(self) -> bool {
        self.keeper != Keeper::Session
    }

    /// Whether both have the same position: one has replaced the other.
    pub(crate) fn has_position_of(self, other: Self) -> bool {
        self.number == other.number
    }

    /// Whether nobody can be between the two.
    pub(crate) fn is_right_before(self, other: Self) -> bool {
        !self.is_timed() && self.number.wrapping_add(1) == other.number
    }

    /// All entries among the names of nodes, in their order.
    pub(crate) fn queue(names: &[String]) -> Vec<Self> {
        let mut queue: Vec<_> = names.iter().filter_map(|it| Self::parse(it)).collect();
        if let Some(first) = queue.first().map(|it| it.number) {
            queue.sort_unstable_by_key(|it| it.number.wrapping_sub(first));
        }
        queue
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::stem(self.share, self.token))?;
        write!(f, "{:010}", self.number)?;
        f.write_str(self.keeper.suffix())
    }
}

impl Keeper {
    fn suffix(self) -> &'static str {
        match self {
            Self::Session => "",
            Self::Cooldown => "-rest",
            Self::Ticket => "-ticket",
        }
    }
}

/// The data of a node: who holds or waits, and in a second line how many
/// milliseconds its lease lasts without a renewal, or the cooldown or ticket.
pub(crate) fn data(name: &str, time: Duration) -> Vec<u8> {
    format!("{name}\n{}", time.as_millis()).into_bytes()
}

/// The data of a holder's node once somebody would like to have the lock.
pub(crate) fn asked(data: &[u8]) -> Vec<u8> {
    if is_asked(data) {
        return data.to_vec();
    }
    [data, ASKED].concat()
}

/// Whether somebody would like to have the lock.
pub(crate) fn is_asked(data: &[u8]) -> bool {
    data.ends_with(ASKED)
}

/// A third line.
const ASKED: &[u8] = b"\nasked";

/// Reads the data of a node.
pub(crate) fn holder(data: &[u8]) -> Holder {
    let text = String::from_utf8_lossy(data);
    let (name, time) = text.split_once('\n').unwrap_or((&text, ""));
    let time = time.lines().next().unwrap_or_default();
    let time = time.parse().ok().map(Duration::from_millis);
    name::holder(name, time)
}

/// How many at the head of a queue hold the lock.
pub(crate) fn holders(queue: &[Entry]) -> usize {
    queue_order::holders(queue.iter().map(|it| it.share))
}

/// The rest of a cooldown, or of the time of a ticket, whose node was created at a time of the server's clock.
pub(crate) fn left(time: Option<Duration>, stat: Stat, server_time: i64) -> Duration {
    let passed = u64::try_from(server_time.saturating_sub(stat.created)).unwrap_or(0);
    let time = time.unwrap_or_default();
    // A clock that counts milliseconds is up to one behind.
    (time + Duration::from_millis(1)).saturating_sub(Duration::from_millis(passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_written_and_read() {
        let token = Token::new().expect("random numbers");
        let three = Share {
            kind: Kind::Permits(12),
            take: 3,
        };
        for (share, code) in [
            (Kind::Exclusive.into(), "x"),
            (Kind::Read.into(), "r"),
            (Kind::Permits(12).into(), "p12"),
            (three, "p12x3"),
        ] {
            for (number, text) in [(7, "0000000007"), (-7, "-000000007")] {
                let name = format!("{code}-{token}-{text}");
                let entry = Entry::parse(&name).expect("an entry");
                assert_eq!(
                    (entry.share, entry.number, entry.is_timed()),
                    (share, number, false)
                );
                assert_eq!(entry.to_string(), name);
                assert!(name.starts_with(&Entry::stem(share, token)));
                let cooldown = entry.cooldown().to_string();
                assert_eq!(cooldown, format!("{name}-rest"));
                assert_eq!(Entry::parse(&cooldown), Some(entry.cooldown()));
                let ticket = entry.ticket(TicketId(7));
                let name = ticket.to_string();
                assert!(name.ends_with(&format!("07-{text}-ticket")), "{name}");
                assert_eq!(Entry::parse(&name), Some(ticket));
                assert!(ticket.is_timed() && ticket.is_of_ticket(TicketId(7), share.kind));
                assert!(!ticket.is_of_ticket(TicketId(8), share.kind));
                assert_eq!(ticket.adopted(token), entry);
            }
        }
        for foreign in ["", "x", "x-1-2", "q-1-2", "_c_7-lock-0000000001"] {
            assert_eq!(Entry::parse(foreign), None, "{foreign}");
        }
        for otherwise in ["+000000007", "7", "-0000000000"] {
            let name = format!("x-{token}-{otherwise}");
            assert_eq!(Entry::parse(&name), None, "{name}");
        }
    }

    #[test]
    fn a_queue_is_in_order_also_where_its_numbers_begin_again() {
        let token = Token::new().expect("random numbers");
        let name = |number: i32| format!("x-{token}-{number:010}");
        let order = [i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 1];
        for shuffled in [[2, 0, 3, 1], [1, 3, 2, 0], [3, 2, 1, 0]] {
            let mut names: Vec<_> = shuffled.iter().map(|at| name(order[*at])).collect();
            names.push("somebody else's".into());
            let queue: Vec<_> = Entry::queue(&names).iter().map(|it| it.number).collect();
            assert_eq!(queue, order);
        }
    }
}
