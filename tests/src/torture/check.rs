//! Reads the history of a run and says what in it must not be.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
    time::Duration,
};

use super::{
    HANDED_KEY, LEADER_KEY, adoptions,
    history::{Event, Grant, Kind, Mode},
    lock_name,
    polls::overlaps,
};

/// What a run has shown.
#[derive(Debug, Default)]
pub struct Report {
    /// How many bodies were entered.
    pub grants: usize,
    /// How many tickets were adopted.
    pub adoptions: usize,
    /// From the first event to the last.
    pub lasted: Duration,
    /// How many callers learnt of a loss.
    pub losses: usize,
    /// How many writes of overtaken holders the register refused.
    pub stale: usize,
    /// How many holders had a poll beside one of another holder, or after that had entered.
    pub overlaps: usize,
    /// For how long the longest of these polls ran on.
    pub longest: Duration,
    /// How many more there were since a poll was longer than any may be: the machine was busy, or the process stopped.
    pub overlong: usize,
    /// How many bodies were entered under a fence that was not above all earlier ones.
    pub fences: usize,
    /// What was still there of locks when nobody was any more.
    pub left_behind: usize,
    /// The longest time that a key stood still after the end of a fault.
    pub recovery: Duration,
    /// Which key that was, and until when.
    pub slowest: Option<(usize, Duration)>,
    /// The longest time from a question to the first poll of the body, or for which there was no answer.
    pub wait: Duration,
    /// What must not be.
    pub violations: Vec<String>,
}

/// How often a key is to be expected before it says something that nobody has got it: by chance that is once in three
/// million times.
const WANTED: f64 = 15.0;

/// What a run has to keep, beside that no body is polled after its deadline.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a promise of its own"
)]
pub(super) struct Promises {
    /// No poll of a body overlaps a poll of another one, or follows it.
    pub(super) exclusive: bool,
    /// Fences grow from body to body.
    pub(super) fences: bool,
    /// The longest poll for which that holds.
    pub(super) margin: Duration,
    /// The ttl of all leases.
    pub(super) ttl: Duration,
    /// Of those who ask for a ticket exactly one adopts it.
    pub(super) tickets: bool,
    /// Nobody adopts a ticket whose time is over.
    pub(super) expiry: bool,
}

/// When some processes could reach what they needed, and had to be granted something.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) processes: Vec<u32>,
    pub(super) time: Range<Duration>,
    /// What was out of order meanwhile.
    pub(super) fault: &'static str,
}

/// Checks the events of a run, in the order of their times, and the ends of its faults.
pub(super) fn check(events: &[Event], healed: &[Duration], promises: Promises) -> Report {
    let count = |kind| events.iter().filter(|event| event.kind == kind).count();
    let mut report = Report {
        grants: count(Kind::Enter),
        lasted: match events {
            [first, .., last] => last.at.saturating_sub(first.at),
            _ => Duration::ZERO,
        },
        losses: count(Kind::Lost),
        stale: count(Kind::Stale),
        ..Report::default()
    };
    let mut keys: BTreeMap<usize, Vec<&Event>> = BTreeMap::new();
    for event in events {
        keys.entry(event.grant.key).or_default().push(event);
    }
    let asked = events.iter().filter(|event| event.kind == Kind::Asked);
    let end = asked.map(|event| event.at).max().unwrap_or_default();
    for (key, events) in &keys {
        report.check_order(events, promises);
        // A ticket whose time has got longer keeps its lock closed.
        if promises.expiry || !(HANDED_KEY..LEADER_KEY).contains(key) {
            report.measure_recovery(events, healed, end);
        }
    }
    report.measure_waits(events);
    report
}

impl Report {
    fn check_order(&mut self, events: &[&Event], promises: Promises) {
        for overlap in overlaps(events, promises.margin) {
            if overlap.overlong {
                self.overlong += 1;
                continue;
            }
            self.overlaps += 1;
            self.longest = self.longest.max(overlap.lasted);
            if promises.exclusive {
                self.violations.push(overlap.to_string());
            }
        }
        self.check_fences(events, promises);
        for Event { at, grant, .. } in events.iter().filter(|it| it.kind == Kind::Late) {
            let key = lock_name(grant.key);
            let what = format!("{key}: {grant} was polled after its deadline at {at:?}");
            self.violations.push(what);
        }
        self.check_former(events);
        self.check_fixed(events, promises.ttl);
        if promises.exclusive {
            self.check_permits(events);
        }
    }

    /// No poll of a body begins after a ttl if its lease is fixed, or its time is.
    fn check_fixed(&mut self, events: &[&Event], ttl: Duration) {
        for (Event { at, grant, .. }, from) in polls_after(Kind::Fixed, events) {
            if *at > from + ttl {
                let key = lock_name(grant.key);
                let what = format!("{key}: {grant} was polled beyond its fixed time, at {at:?}");
                self.violations.push(what);
            }
        }
    }

    /// Whoever takes a permit has it from its first poll to the beginning of its last one.
    fn check_permits(&mut self, events: &[&Event]) {
        let mut held: BTreeMap<Grant, Range<Duration>> = BTreeMap::new();
        for Event { at, grant, .. } in events
            .iter()
            .filter(|it| matches!(it.kind, Kind::Enter | Kind::Poll))
            .filter(|it| matches!(it.grant.mode, Mode::Permits(_)))
        {
            held.entry(*grant).or_insert(*at..*at).end = *at;
        }
        for (grant, time) in &held {
            let Mode::Permits(most) = grant.mode else {
                continue;
            };
            let others = held.iter().filter(|(it, _)| *it != grant);
            let beside = others.filter(|(_, it)| it.contains(&time.start));
            if beside.count() >= most as usize {
                let (key, at) = (lock_name(grant.key), time.start);
                let what = format!("{key}: {grant} is one too many at {at:?}");
                self.violations.push(what);
            }
        }
    }

    /// No poll of a body begins after a ticket has taken the place of its guard.
    fn check_former(&mut self, events: &[&Event]) {
        for (Event { at, grant, .. }, _) in polls_after(Kind::Issued, events) {
            let key = lock_name(grant.key);
            let what = format!("{key}: {grant} was polled after its ticket, at {at:?}");
            self.violations.push(what);
        }
    }

    /// Each ticket has one adopter, and nobody else gets its lock before.
    pub(super) fn check_tickets(
        &mut self,
        events: &[Event],
        tickets: &[adoptions::Event],
        promises: Promises,
    ) {
        let fates = adoptions::fates(tickets);
        self.adoptions = fates.iter().map(|it| it.adopters().count()).sum();
        let wrong = fates.iter().flat_map(|it| it.wrong(promises));
        self.violations.extend(wrong);
        if promises.exclusive && promises.tickets {
            let closed = fates.iter().filter_map(|it| it.closed(promises.ttl));
            self.check_kept(events, closed);
        }
    }

    /// Nobody enters while a ticket keeps the lock closed.
    fn check_kept(
        &mut self,
        events: &[Event],
        closed: impl Iterator<Item = (usize, Range<Duration>)>,
    ) {
        let mut entered: BTreeMap<(usize, Duration), Grant> = BTreeMap::new();
        for Event { at, grant, .. } in events.iter().filter(|it| it.kind == Kind::Enter) {
            entered.insert((grant.key, *at), *grant);
        }
        for (key, time) in closed.filter(|(_, time)| !time.is_empty()) {
            for ((_, at), grant) in entered.range((key, time.start)..(key, time.end)) {
                let (key, until) = (lock_name(key), time.end);
                let what =
                    format!("{key}: {grant} entered at {at:?}, closed by a ticket until {until:?}");
                self.violations.push(what);
            }
        }
    }

    /// In the order of first polls, whoever holds a lock alone has a larger fence than all before, and whoever shares it
    /// a larger one than all before who did not.
    fn check_fences(&mut self, events: &[&Event], promises: Promises) {
        let (mut highest, mut highest_alone) = (0, 0);
        for Event { at, grant, .. } in events.iter().filter(|it| it.kind == Kind::Enter) {
            let Grant { fence, mode, .. } = grant;
            let alone = *mode == Mode::Alone;
            let before = if alone { highest } else { highest_alone };
            if *fence <= before {
                self.fences += 1;
                if promises.fences {
                    let key = lock_name(grant.key);
                    let what = format!("{key}: {grant} entered after {before} at {at:?}");
                    self.violations.push(what);
                }
            }
            highest = highest.max(*fence);
            if alone {
                highest_alone = highest_alone.max(*fence);
            }
        }
    }

    /// A body that was running when the fault ended may run on, and a key may be free since nobody asks for it: the time
    /// counts from the last sign of life and from the question. A key that nobody gets any more counts until the `end`,
    /// when the last ones asked for locks, if it was wanted often before. Whoever adopts a ticket says nothing of that: a
    /// key that is handed on has many entries at once, and none until somebody picks it again.
    fn measure_recovery(&mut self, events: &[&Event], healed: &[Duration], end: Duration) {
        let mut asked = HashMap::new();
        let mut alive = Vec::new();
        for event in events {
            match event.kind {
                Kind::Asked => {
                    asked.insert(event.grant.id(), event.at);
                }
                Kind::Refused | Kind::Fixed => {}
                _ => alive.push(*event),
            }
        }
        let is_wanted =
            |pair: &&[&Event]| pair[0].kind != Kind::Issued && pair[1].kind == Kind::Enter;
        let entries = alive.windows(2).filter(is_wanted).count();
        let began = alive.first().map_or(end, |it| it.at);
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let often = entries as f64 / end.saturating_sub(began).as_secs_f64().max(1.0);
        for healed in healed {
            let after = alive.partition_point(|event| event.at <= *healed);
            let entered = alive[after..].iter().position(|it| it.kind == Kind::Enter);
            let next = entered.map_or(alive.len(), |further| after + further);
            let before = next.checked_sub(1).map(|last| alive[last]);
            let next = alive.get(next);
            let wanted = next.and_then(|it| asked.get(&it.grant.id()).copied());
            let from = [before.map(|it| it.at), wanted, Some(*healed)];
            let from = from.into_iter().flatten().max().unwrap_or_default();
            let until = next.map_or(end, |it| it.at);
            let still = until.saturating_sub(from);
            if next.is_none() && still.mul_f64(often).as_secs_f64() < WANTED {
                continue;
            }
            if still > self.recovery
                && let Some(one) = next.or(before.as_ref())
            {
                self.recovery = still;
                self.slowest = Some((one.grant.key, until));
            }
        }
    }

    /// A question without an answer counts until the last sign of life of its process.
    fn measure_waits(&mut self, events: &[Event]) {
        let (mut asked, mut seen) = (HashMap::new(), HashMap::new());
        for Event {
            at, kind, grant, ..
        } in events
        {
            seen.insert(grant.process, *at);
            match kind {
                Kind::Asked => {
                    asked.insert(grant.id(), *at);
                }
                Kind::Enter | Kind::Refused => {
                    let asked = asked.remove(&grant.id()).unwrap_or(*at);
                    self.wait = self.wait.max(at.saturating_sub(asked));
                }
                _ => {}
            }
        }
        for ((process, _), asked) in asked {
            let seen = seen.get(&process).copied().unwrap_or(asked);
            self.wait = self.wait.max(seen.saturating_sub(asked));
        }
    }

    /// Nobody gets in while no majority is up.
    pub(super) fn check_closed(&mut self, events: &[Event], closed: &[Range<Duration>]) {
        for Event { at, grant, .. } in events.iter().filter(|it| it.kind == Kind::Enter) {
            if closed.iter().any(|closed| closed.contains(at)) {
                let what = format!("{grant:?} was entered at {at:?} without a majority");
                self.violations.push(what);
            }
        }
    }

    /// Whoever can reach what it needs gets locks.
    pub(super) fn check_served(&mut self, events: &[Event], served: &[Served]) {
        for Served {
            processes,
            time,
            fault,
        } in served
        {
            let entered: HashSet<_> = events
                .iter()
                .filter(|it| it.kind == Kind::Enter && time.contains(&it.at))
                .map(|it| it.grant.process)
                .collect();
            for process in processes.iter().filter(|it| !entered.contains(it)) {
                let what = format!("process {process} got no lock within {time:?}: {fault}");
                self.violations.push(what);
            }
        }
    }

    /// The register's writes are in the order in which their bodies were entered.
    pub(super) fn check_writes(&mut self, key: usize, writes: &[u64], events: &[Event]) {
        let entered: HashMap<u64, Duration> = events
            .iter()
            .filter(|event| event.kind == Kind::Enter && event.grant.key == key)
            .map(|event| (event.grant.fence, event.at))
            .collect();
        // A process that was killed in its first poll has noted nothing.
        let writes: Vec<_> = writes
            .iter()
            .filter(|it| entered.contains_key(it))
            .collect();
        for pair in writes.windows(2) {
            if entered.get(pair[1]) < entered.get(pair[0]) {
                let (key, [first, second]) = (lock_name(key), [pair[0], pair[1]]);
                let what = format!("{key}: the write of {second} was taken after {first}'s");
                self.violations.push(what);
            }
        }
    }
}

/// The polls of bodies behind an event of this kind of the same grant, and when that was.
fn polls_after<'a>(
    mark: Kind,
    events: &[&'a Event],
) -> impl Iterator<Item = (&'a Event, Duration)> {
    let mut marked = HashMap::new();
    events.iter().filter_map(move |event| {
        if event.kind == mark {
            marked.insert(event.grant, event.at);
        }
        let at = marked.get(&event.grant)?;
        matches!(event.kind, Kind::Enter | Kind::Poll).then_some((*event, *at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMISES: Promises = Promises {
        exclusive: true,
        fences: true,
        margin: Duration::from_millis(50),
        ttl: Duration::from_millis(600),
        tickets: true,
        expiry: true,
    };

    fn violations(events: &[Event]) -> Vec<String> {
        check(events, &[], PROMISES).violations
    }

    #[test]
    fn a_permit_is_held_between_its_polls() {
        let poll = |number, kind, at| Event::poll(number, Mode::Permits(2), kind, at, at);
        let two = [
            poll(1, Kind::Enter, 0),
            poll(2, Kind::Enter, 10),
            poll(1, Kind::Poll, 20),
            poll(3, Kind::Enter, 30),
            poll(2, Kind::Poll, 40),
        ];
        assert_eq!(violations(&two), [""; 0]);
        let three = [&two[..], &[poll(1, Kind::Poll, 50)]].concat();
        let found = violations(&three);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("grant 3") && found[0].contains("one too many"));
    }

    #[test]
    fn who_is_never_granted_a_lock_has_waited_to_the_end() {
        let event = |number, kind, at| Event::poll(number, Mode::Alone, kind, at, at);
        let waited = |events: &[Event]| check(events, &[], PROMISES).wait.as_millis();
        let mut events = vec![
            event(1, Kind::Asked, 0),
            event(2, Kind::Asked, 5),
            event(1, Kind::Enter, 10),
            event(1, Kind::Done, 100),
        ];
        assert_eq!(waited(&events), 95);
        events.insert(3, event(2, Kind::Refused, 20));
        assert_eq!(waited(&events), 15);
    }

    #[test]
    fn a_key_that_nobody_gets_any_more_has_not_recovered() {
        let event = |key, kind, at| {
            let mut event = Event::poll(1, Mode::Alone, kind, at, at);
            event.grant.key = key;
            event
        };
        let healed = [Duration::from_millis(100)];
        let still = |events: &[Event]| {
            let report = check(events, &healed, PROMISES);
            (report.recovery.as_millis(), report.slowest.map(|it| it.0))
        };
        let mut events: Vec<_> = (0..50).map(|at| event(0, Kind::Enter, at)).collect();
        events.extend([
            event(1, Kind::Enter, 150),
            event(2, Kind::Asked, 900),
            event(2, Kind::Enter, 910),
        ]);
        assert_eq!(still(&events), (800, Some(0)));
        let seldom = &events[40..];
        assert_eq!(still(seldom), (50, Some(1)));
        events.insert(50, event(0, Kind::Done, 850));
        assert_eq!(still(&events), (50, Some(1)));

        let handed_on = |at| [event(0, Kind::Enter, at), event(0, Kind::Issued, at)];
        let mut events: Vec<_> = (0..50).flat_map(handed_on).collect();
        events.push(event(2, Kind::Asked, 900));
        assert_eq!(still(&events), (0, None));
    }

    #[test]
    fn nobody_enters_a_lock_that_a_ticket_keeps_closed() {
        let ms = Duration::from_millis;
        let events =
            [100, 110, 199, 200].map(|at| Event::poll(1, Mode::Alone, Kind::Enter, at, at));
        let found = |key, time: Range<Duration>| {
            let mut report = Report::default();
            report.check_kept(&events, [(key, time)].into_iter());
            report.violations.len()
        };
        assert_eq!(found(0, ms(101)..ms(200)), 2);
        assert_eq!(found(0, ms(201)..ms(300)), 0);
        assert_eq!(found(0, ms(150)..ms(100)), 0);
        assert_eq!(found(1, ms(100)..ms(300)), 0);
    }

    #[test]
    fn a_body_ends_with_its_ticket() {
        let event = |kind, at| Event::poll(1, Mode::Alone, kind, at, at);
        let polls = [event(Kind::Enter, 0), event(Kind::Poll, 10)];
        let then = [&polls[..], &[event(Kind::Issued, 20)]].concat();
        assert_eq!(violations(&then), [""; 0]);
        let found = violations(&[&then[..], &[event(Kind::Poll, 30)]].concat());
        assert!(
            found.len() == 1 && found[0].contains("after its ticket"),
            "{found:?}"
        );
    }

    #[test]
    fn a_fixed_lease_lasts_for_its_ttl() {
        let event = |kind, at| Event::poll(1, Mode::Alone, kind, at, at);
        let in_time = [
            event(Kind::Fixed, 0),
            event(Kind::Enter, 0),
            event(Kind::Poll, 600),
        ];
        assert_eq!(violations(&in_time), [""; 0]);
        let late = [&in_time[..], &[event(Kind::Poll, 601)]].concat();
        let found = violations(&late);
        assert!(
            found.len() == 1 && found[0].contains("beyond its fixed time"),
            "{found:?}"
        );
    }
}
