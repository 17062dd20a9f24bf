//! What became of tickets: who asked for each, and what the answer was.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
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
    /// It was made; asked for at that moment, for so long.
    Issued(Duration, Duration),
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

    /// Notes a ticket that was asked for at that moment.
    pub(super) fn issued(&self, ticket: &Ticket, from: Duration, time: Duration) {
        let (from, time) = (from.as_nanos(), time.as_nanos());
        let what = format_args!("{} 0 issued {from} {time}", name(ticket));
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
            ["issued", from, time] => Kind::Issued(nanos(from), nanos(time)),
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
    /// When it was asked for, when it was made, and for how long.
    issued: Option<[Duration; 3]>,
    /// The requests that are not known to have been refused.
    open: BTreeSet<(String, u32)>,
    /// When the last refusal came.
    refused: Option<Duration>,
    /// When each request that had the lock began.
    pub(super) adopters: Vec<Duration>,
}

/// What became of each ticket, from the events in the order of their times.
pub(super) fn fates(events: &[Event]) -> Vec<Fate> {
    let mut fates: BTreeMap<&str, Fate> = BTreeMap::new();
    let mut asked = BTreeMap::new();
    for event in events {
        let fate = fates.entry(&event.ticket).or_insert_with(|| Fate {
            ticket: event.ticket.clone(),
            ..Fate::default()
        });
        match event.kind {
            Kind::Issued(from, time) => fate.issued = Some([from, event.at, time]),
            Kind::Asked => {
                asked.insert(&event.request, event.at);
                fate.open.insert(event.request.clone());
            }
            Kind::Adopted => fate.adopters.push(asked[&event.request]),
            Kind::Refused => {
                fate.open.remove(&event.request);
                // The last one: an earlier one may be of somebody behind a request that adopted the ticket and was
                // stopped, which is refused when its own lease has ended.
                fate.refused = Some(event.at);
            }
            Kind::Unknown => {}
        }
    }
    fates.into_values().collect()
}

impl Fate {
    /// What of it must not be.
    pub(super) fn wrong(&self, promises: Promises) -> Vec<String> {
        let mut wrong = Vec::new();
        if promises.tickets && self.adopters.len() > 1 {
            wrong.push(format!("{} requests adopted it", self.adopters.len()));
        }
        let Some([from, made, time]) = self.issued else {
            // Who made it was killed before it could note it.
            return self.describe(wrong);
        };
        let sure = from + time.saturating_sub(SLACK);
        let valid = self.refused.is_some_and(|it| it < sure);
        if promises.tickets && valid && self.open.is_empty() && self.adopters.is_empty() {
            wrong.push("was refused to everybody within its time".to_owned());
        }
        for asked in &self.adopters {
            let late = asked.saturating_sub(made + time);
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
        let ms = Duration::from_millis;
        let event = |at, request: usize, kind| Event {
            at: ms(at),
            ticket: "a".to_owned(),
            request: ("1".to_owned(), u32::try_from(request).expect("few")),
            kind,
        };
        let mut events = vec![event(110, 0, Kind::Issued(ms(100), ms(300)))];
        for (number, (from, until, end)) in requests.iter().enumerate() {
            events.push(event(*from, number, Kind::Asked));
            events.push(event(*until, number, *end));
        }
        events.sort_by_key(|it| it.at);
        let fates = fates(&events);
        fates.iter().flat_map(|it| it.wrong(promises)).count()
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

    #[test]
    fn a_ticket_that_outlives_its_time_is_found() {
        assert_eq!(wrong(&[(400, 450, Kind::Adopted)]), 0);
        assert_eq!(wrong(&[(440, 450, Kind::Adopted)]), 1);
    }
}
