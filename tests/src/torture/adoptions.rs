//! What became of tickets: who asked for each, and what the answer was.

use std::{
    collections::BTreeMap,
    fs, io,
    ops::Range,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use lock_runtime::Ticket;

use super::{check::Promises, history::monotonic};
use crate::log::{self, Log};

/// The folder among those of a run that has these files.
const FOLDER: &str = "tickets";
/// By how much the time of a ticket may seem longer than it is: servers count in milliseconds.
const SLACK: Duration = Duration::from_millis(20);

/// Where one process notes what it does with tickets.
#[derive(Debug)]
pub(super) struct Adoptions {
    log: Log,
    requests: AtomicU32,
}

/// What happened to a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It was made of this lock; asked for at that moment, for so long.
    Issued(usize, Duration, Duration),
    /// A request for it began.
    Asked,
    /// That request has the lock.
    Adopted,
    /// That request was told that the ticket is invalid.
    Refused,
    /// Nobody knows what that request did: it was given up, or not answered.
    Unknown,
}

/// One line of such a file.
#[derive(Clone, Debug)]
pub(super) struct Event {
    at: Duration,
    ticket: String,
    /// The process, and its number of the request.
    request: (String, u32),
    kind: Kind,
}

/// A request for a ticket, whose end is to be noted.
#[derive(Debug)]
pub(super) struct Request<'a> {
    adoptions: &'a Adoptions,
    ticket: String,
    number: u32,
}

impl Adoptions {
    /// Appends to the file of this process in a folder of this directory.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let folder = directory.join(FOLDER);
        fs::create_dir_all(&folder)?;
        Ok(Self {
            log: Log::open(&folder)?,
            requests: AtomicU32::new(0),
        })
    }

    /// Notes a ticket of a lock that was asked for at that moment.
    pub(super) fn issued(&self, ticket: &Ticket, key: usize, from: Duration, time: Duration) {
        let (from, time) = (from.as_nanos(), time.as_nanos());
        let what = format_args!("{} 0 issued {key} {from} {time}", name(ticket));
        self.log.note(monotonic(), what);
    }

    /// Notes that a request for a ticket begins.
    pub(super) fn asks(&self, ticket: &Ticket) -> Request<'_> {
        let request = Request {
            adoptions: self,
            ticket: name(ticket),
            number: self.requests.fetch_add(1, Ordering::Relaxed),
        };
        request.note("asked");
        request
    }
}

impl Request<'_> {
    /// Notes that it has the lock.
    pub(super) fn adopted(self) {
        self.note("adopted");
    }

    /// Notes that it was told that the ticket is invalid.
    pub(super) fn refused(self) {
        self.note("refused");
    }

    /// Notes that nobody knows what it did.
    pub(super) fn unknown(self) {
        self.note("unknown");
    }

    fn note(&self, what: &str) {
        let Self { ticket, number, .. } = self;
        let what = format_args!("{ticket} {number} {what}");
        self.adoptions.log.note(monotonic(), what);
    }
}

/// What a ticket is called: its secret.
fn name(ticket: &Ticket) -> String {
    let text = ticket.to_string();
    text.split('-').next().unwrap_or_default().to_owned()
}

/// All that processes noted in the folder of this directory.
pub(super) fn read(directory: &Path) -> io::Result<Vec<Event>> {
    let folder = directory.join(FOLDER);
    if folder.exists() {
        log::read(&folder, parse)
    } else {
        Ok(Vec::new())
    }
}

fn parse(process: &str, at: Duration, words: &str) -> Event {
    let words: Vec<_> = words.split(' ').collect();
    let nanos = |text: &str| Duration::from_nanos(text.parse().expect("nanoseconds"));
    let [ticket, number, ref what @ ..] = words[..] else {
        panic!("lines are written whole: {words:?}");
    };
    Event {
        at,
        ticket: ticket.to_owned(),
        request: (process.to_owned(), number.parse().expect("a number")),
        kind: match *what {
            ["issued", key, from, time] => {
                Kind::Issued(key.parse().expect("a key"), nanos(from), nanos(time))
            }
            ["asked"] => Kind::Asked,
            ["adopted"] => Kind::Adopted,
            ["refused"] => Kind::Refused,
            ["unknown"] => Kind::Unknown,
            _ => panic!("nothing that happens to a ticket: {words:?}"),
        },
    }
}

/// What became of one ticket.
#[derive(Debug, Default)]
pub(super) struct Fate {
    ticket: String,
    /// Unknown if who made it was killed before it could note it.
    issued: Option<Issued>,
    requests: BTreeMap<(String, u32), Asked>,
}

/// How a ticket was made.
#[derive(Clone, Copy, Debug)]
struct Issued {
    key: usize,
    /// When it was asked for.
    from: Duration,
    made: Duration,
    time: Duration,
}

/// A request for a ticket.
#[derive(Debug)]
struct Asked {
    from: Duration,
    /// When and how it ended.
    end: Option<(Duration, Kind)>,
}

/// What became of each ticket, from the events in the order of their times.
pub(super) fn fates(events: &[Event]) -> Vec<Fate> {
    let mut fates: BTreeMap<&str, Fate> = BTreeMap::new();
    for event in events {
        let fate = fates.entry(&event.ticket).or_insert_with(|| Fate {
            ticket: event.ticket.clone(),
            ..Fate::default()
        });
        let (at, request) = (event.at, event.request.clone());
        match event.kind {
            Kind::Issued(key, from, time) => {
                let made = at;
                fate.issued = Some(Issued {
                    key,
                    from,
                    made,
                    time,
                });
            }
            Kind::Asked => {
                let asked = Asked {
                    from: at,
                    end: None,
                };
                fate.requests.insert(request, asked);
            }
            end => {
                let asked = fate.requests.get_mut(&request).expect("it was asked for");
                asked.end = Some((at, end));
            }
        }
    }
    fates.into_values().collect()
}

impl Asked {
    fn adopted(&self) -> bool {
        matches!(self.end, Some((_, Kind::Adopted)))
    }

    fn refused(&self) -> Option<Duration> {
        let (at, end) = self.end?;
        (end == Kind::Refused).then_some(at)
    }

    /// Whether it may have had the lock. One that adopted the ticket and was stopped is refused when its lease has ended.
    fn may_have_adopted(&self, ttl: Duration) -> bool {
        self.refused()
            .is_none_or(|at| at.saturating_sub(self.from) >= ttl.saturating_sub(SLACK))
    }
}

impl Fate {
    /// When each request that had the lock began.
    pub(super) fn adopters(&self) -> impl Iterator<Item = Duration> {
        let adopters = self.requests.values().filter(|it| it.adopted());
        adopters.map(|it| it.from)
    }

    /// The number of its lock, and when that was open to nobody: from the moment at which it was made, until somebody asked
    /// for it who may have got it, or until its time was over.
    pub(super) fn closed(&self, ttl: Duration) -> Option<(usize, Range<Duration>)> {
        let issued = self.issued?;
        let takers = self.requests.values();
        let takers = takers.filter(|it| it.may_have_adopted(ttl));
        let until = takers.map(|it| it.from).chain([issued.sure()]).min()?;
        Some((issued.key, issued.made..until))
    }

    /// What of it must not be.
    pub(super) fn wrong(&self, promises: Promises) -> Vec<String> {
        let mut wrong = Vec::new();
        let adopters: Vec<_> = self.adopters().collect();
        if promises.tickets && adopters.len() > 1 {
            wrong.push(format!("{} requests adopted it", adopters.len()));
        }
        let Some(issued) = self.issued else {
            return self.describe(wrong);
        };
        let refused: Option<Vec<_>> = self.requests.values().map(Asked::refused).collect();
        // The last one: an earlier one may be of somebody behind a request that adopted the ticket and was stopped.
        let last = refused.and_then(|it| it.into_iter().max());
        if promises.tickets && last.is_some_and(|it| it < issued.sure()) {
            wrong.push("was refused to everybody within its time".to_owned());
        }
        for asked in adopters {
            let late = asked.saturating_sub(issued.made + issued.time);
            if promises.expiry && late > SLACK {
                wrong.push(format!("was adopted {late:?} after its time"));
            }
        }
        self.describe(wrong)
    }

    fn describe(&self, wrong: Vec<String>) -> Vec<String> {
        let ticket = &self.ticket;
        let wrong = wrong.into_iter();
        wrong.map(|it| format!("ticket {ticket}: {it}")).collect()
    }
}

impl Issued {
    /// Until when it is valid at the least.
    fn sure(&self) -> Duration {
        self.from + self.time.saturating_sub(SLACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Promises = Promises {
        exclusive: true,
        fences: true,
        margin: Duration::ZERO,
        ttl: Duration::ZERO,
        tickets: true,
        expiry: true,
    };

    /// What is wrong with a ticket of 300 ms that was asked for at 100 ms and made at 110 ms, whose requests begin and
    /// end so.
    fn wrong(requests: &[(u64, u64, Kind)]) -> usize {
        wrong_with(KEPT, requests)
    }

    fn wrong_with(promises: Promises, requests: &[(u64, u64, Kind)]) -> usize {
        fate(requests).wrong(promises).len()
    }

    fn fate(requests: &[(u64, u64, Kind)]) -> Fate {
        let ms = Duration::from_millis;
        let event = |at, request: usize, kind| Event {
            at: ms(at),
            ticket: "a".to_owned(),
            request: ("1".to_owned(), u32::try_from(request).expect("few")),
            kind,
        };
        let mut events = vec![event(110, 0, Kind::Issued(7, ms(100), ms(300)))];
        for (number, (from, until, end)) in requests.iter().enumerate() {
            events.push(event(*from, number, Kind::Asked));
            events.push(event(*until, number, *end));
        }
        events.sort_by_key(|it| it.at);
        fates(&events).remove(0)
    }

    #[test]
    fn one_adopter_among_others_is_right() {
        let others = [
            (120, 140, Kind::Refused),
            (120, 150, Kind::Adopted),
            (130, 160, Kind::Unknown),
        ];
        assert_eq!(wrong(&others), 0);
    }

    #[test]
    fn a_second_adopter_is_found() {
        let both = [(120, 150, Kind::Adopted), (130, 160, Kind::Adopted)];
        assert_eq!(wrong(&both), 1);
    }

    #[test]
    fn a_ticket_that_is_refused_to_all_within_its_time_is_found() {
        let early = [(120, 150, Kind::Refused), (130, 160, Kind::Refused)];
        assert_eq!(wrong(&early), 1);
        let perhaps = [(120, 150, Kind::Refused), (130, 160, Kind::Unknown)];
        assert_eq!(wrong(&perhaps), 0);
        assert_eq!(wrong(&[(120, 420, Kind::Refused)]), 0);
    }

    #[test]
    fn its_time_counts_where_it_may_end_late_too() {
        let early = [(120, 370, Kind::Refused)];
        let late = [(440, 450, Kind::Adopted)];
        let kept = Promises {
            expiry: false,
            ..KEPT
        };
        assert_eq!((wrong_with(kept, &early), wrong_with(kept, &late)), (1, 0));
    }

    /// From when until when the lock of the ticket is closed, in milliseconds; leases last 50.
    fn closed(requests: &[(u64, u64, Kind)]) -> (u128, u128) {
        let closed = fate(requests).closed(Duration::from_millis(50));
        let (key, closed) = closed.expect("it was made");
        assert_eq!(key, 7);
        (closed.start.as_millis(), closed.end.as_millis())
    }

    #[test]
    fn a_ticket_keeps_its_lock_closed_until_somebody_may_have_it() {
        assert_eq!(closed(&[]), (110, 380));
        let refused = (120, 140, Kind::Refused);
        assert_eq!(closed(&[refused, (200, 210, Kind::Adopted)]), (110, 200));
        assert_eq!(closed(&[refused, (200, 210, Kind::Unknown)]), (110, 200));
        assert_eq!(closed(&[refused]), (110, 380));
        // Its own lease may have ended meanwhile.
        assert_eq!(closed(&[(120, 160, Kind::Refused)]), (110, 120));
    }

    #[test]
    fn a_ticket_that_outlives_its_time_is_found() {
        assert_eq!(wrong(&[(400, 450, Kind::Adopted)]), 0);
        assert_eq!(wrong(&[(440, 450, Kind::Adopted)]), 1);
    }
}
