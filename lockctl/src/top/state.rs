//! What `top` knows and shows, and what its keys do to that. No terminal here.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use lock_runtime::inspect::{ChangeKind, Overview, Status, Summary};
use lock_runtime::{LockError, LockKey};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use serde::Serialize;

use crate::cli::Sort;
use crate::ls;
use crate::record;
use crate::revoking::{self, Seen, WAY_OUT};
use crate::since::Watched;
use crate::top::Look;
use crate::watch::is_grant;
use crate::words::tame;

/// For how long a grant makes its key hot.
const HOT: Duration = Duration::from_secs(60);

/// How many looks the sparklines reach back.
const COURSE: usize = 40;

/// What follows from a key.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    Nothing,
    /// Look at the store at once.
    Look,
    /// Revoke this lock, if nobody else holds it than these.
    Force(LockKey, Vec<Seen>),
    Quit,
}

/// What the lines below the totals show.
#[derive(Debug)]
pub(super) enum Page {
    List,
    /// One lock and its queue, once it was asked for.
    Details(LockKey, Option<Status>),
}

/// What the keys are for.
#[derive(Debug, PartialEq)]
pub(super) enum Mode {
    Commands,
    Filter,
    /// Whether to revoke this lock.
    Question(LockKey),
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) page: Page,
    pub(super) mode: Mode,
    pub(super) sort: Sort,
    pub(super) filter: String,
    pub(super) selected: usize,
    pub(super) message: Option<String>,
    /// Why the last look failed.
    pub(super) trouble: Option<String>,
    /// Which store this is, and what its keys begin with.
    pub(super) store: String,
    /// When the last look was that has found something.
    pub(super) seen: Option<SystemTime>,
    last: Option<(Instant, Overview)>,
    watched: Watched,
    /// Waiters and hand-overs a second of the last looks, the oldest first.
    course: VecDeque<(f64, f64)>,
    grants: Option<f64>,
    hand_overs: f64,
    latency: Option<Duration>,
    /// The grants that were seen lately, the oldest first.
    recent: VecDeque<(Instant, LockKey)>,
}

/// The numbers at the top.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Totals {
    pub(super) held: usize,
    pub(super) waiting: usize,
    pub(super) longest_wait_ms: Option<u64>,
    pub(super) grants_per_second: Option<f64>,
    pub(super) hand_overs_per_second: f64,
    pub(super) latency_us: Option<u64>,
}

impl State {
    pub(super) fn new(sort: Sort, store: String) -> Self {
        Self {
            page: Page::List,
            mode: Mode::Commands,
            sort,
            filter: String::new(),
            selected: 0,
            message: None,
            trouble: None,
            store,
            seen: None,
            last: None,
            watched: Watched::default(),
            course: VecDeque::new(),
            grants: None,
            hand_overs: 0.0,
            latency: None,
            recent: VecDeque::new(),
        }
    }

    /// Takes in what a look has found.
    pub(super) fn saw(&mut self, look: Result<Look, LockError>) {
        let mut look = match look {
            Ok(look) => look,
            Err(error) => {
                self.trouble = Some(tame(&error.to_string()).into_owned());
                self.watched.missed();
                return;
            }
        };
        self.trouble = None;
        self.latency = look.health.round_trip;
        let now = Instant::now();
        if let Some((then, earlier)) = &self.last {
            let seconds = now.duration_since(*then).as_secs_f64().max(0.001);
            let changes = look.overview.changes_since(earlier);
            let handed = changes
                .iter()
                .filter(|it| it.kind == ChangeKind::HandedOver);
            self.hand_overs = rate(handed.count(), seconds);
            let counted = look.overview.grants_since(earlier);
            let counted = counted.and_then(|it| usize::try_from(it).ok());
            self.grants = counted.map(|it| rate(it, seconds));
            let granted = changes.into_iter().filter(|it| is_grant(it.kind));
            self.recent.extend(granted.map(|it| (now, it.key)));
        }
        while self
            .recent
            .front()
            .is_some_and(|(at, _)| now.duration_since(*at) > HOT)
        {
            self.recent.pop_front();
        }
        if let (Page::Details(key, shown), Some(status)) = (&mut self.page, look.status)
            && *key == status.key
        {
            let seen = shown.as_ref().map(revoking::seen);
            let is_another = seen.is_some_and(|seen| revoking::has_newcomer(&seen, &status));
            if is_another && self.mode == Mode::Question(status.key.clone()) {
                self.mode = Mode::Commands;
                self.message = Some(format!(
                    "`{}` has another holder; {WAY_OUT}",
                    tame(key.as_str())
                ));
            }
            *shown = Some(status);
        }
        let seen = SystemTime::now();
        self.watched.complete(&mut look.overview, seen);
        self.seen = Some(seen);
        self.last = Some((now, look.overview));
        self.course
            .push_back((number(self.totals().waiting), self.hand_overs));
        if self.course.len() > COURSE {
            self.course.pop_front();
        }
        self.selected = self.selected.min(self.rows().len().saturating_sub(1));
    }

    pub(super) fn has_looked(&self) -> bool {
        self.last.is_some()
    }

    /// How many waited and how many hand-overs a second there were at the last looks.
    pub(super) fn course(&self) -> impl ExactSizeIterator<Item = (f64, f64)> + Clone + '_ {
        self.course.iter().copied()
    }

    pub(super) fn tell(&mut self, message: String) {
        self.message = Some(message);
    }

    pub(super) fn totals(&self) -> Totals {
        let Some((_, overview)) = &self.last else {
            return Totals::default();
        };
        let longest = overview.locks.iter().filter_map(|it| it.longest_wait).max();
        Totals {
            held: ls::held(&overview.locks),
            waiting: ls::waiting(&overview.locks),
            longest_wait_ms: longest.map(record::millis),
            grants_per_second: self.grants,
            hand_overs_per_second: self.hand_overs,
            latency_us: self
                .latency
                .map(|it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX)),
        }
    }

    /// The locks that pass the filter, sorted, each with how hot it is.
    pub(super) fn rows(&self) -> Vec<(&Summary, usize)> {
        let Some((_, overview)) = &self.last else {
            return Vec::new();
        };
        let mut heat: HashMap<&LockKey, usize> = HashMap::new();
        for (_, key) in &self.recent {
            *heat.entry(key).or_default() += 1;
        }
        let locks = overview.locks.iter();
        let passing = locks.filter(|it| it.key.as_str().contains(&self.filter));
        let mut rows: Vec<_> = passing
            .map(|it| (it, heat.get(&it.key).copied().unwrap_or(0)))
            .collect();
        match self.sort {
            Sort::Hot => rows.sort_by_key(|(_, heat)| std::cmp::Reverse(*heat)),
            sort => rows.sort_by(|(one, _), (other, _)| ls::order(one, other, sort)),
        }
        rows
    }

    pub(super) fn details_of(&self) -> Option<&LockKey> {
        match &self.page {
            Page::Details(key, _) => Some(key),
            Page::List => None,
        }
    }

    pub(super) fn pressed(&mut self, key: KeyCode, modifiers: KeyModifiers) -> Action {
        if modifiers.contains(KeyModifiers::CONTROL) && key == KeyCode::Char('c') {
            return Action::Quit;
        }
        self.message = None;
        match std::mem::replace(&mut self.mode, Mode::Commands) {
            Mode::Commands => self.command(key),
            Mode::Filter => {
                self.edit(key);
                Action::Nothing
            }
            Mode::Question(lock) => match key {
                KeyCode::Char('y' | 'Y') => self.revoke(lock),
                _ => Action::Nothing,
            },
        }
    }

    fn command(&mut self, key: KeyCode) -> Action {
        let last = self.rows().len().saturating_sub(1);
        match key {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => match self.page {
                Page::Details(..) => self.page = Page::List,
                Page::List => self.filter.clear(),
            },
            KeyCode::Down | KeyCode::Char('j') => self.selected = last.min(self.selected + 1),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::PageDown => self.selected = last.min(self.selected + 15),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(15),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Enter | KeyCode::Right => {
                if let Some(key) = self.chosen() {
                    self.page = Page::Details(key, None);
                    return Action::Look;
                }
            }
            KeyCode::Char('f') => return self.ask_whether_to_revoke(),
            _ => {}
        }
        Action::Nothing
    }

    /// Asks beside the details of the lock; a free one cannot be revoked.
    fn ask_whether_to_revoke(&mut self) -> Action {
        let Some(key) = self.chosen() else {
            return Action::Nothing;
        };
        let is_free = match &self.page {
            Page::Details(_, status) => status.as_ref().is_some_and(|it| it.holders.is_empty()),
            Page::List => self
                .rows()
                .iter()
                .any(|(it, _)| it.key == key && it.held_by == 0),
        };
        if is_free {
            self.tell(format!("`{}` is free", tame(key.as_str())));
            return Action::Nothing;
        }
        self.mode = Mode::Question(key.clone());
        if self.details_of() == Some(&key) {
            return Action::Nothing;
        }
        self.page = Page::Details(key, None);
        Action::Look
    }

    /// Revokes the lock from the holders that are shown.
    fn revoke(&mut self, lock: LockKey) -> Action {
        match &self.page {
            Page::Details(key, Some(status)) if *key == lock => {
                Action::Force(lock, revoking::seen(status))
            }
            _ => {
                self.tell("its holders are not known yet".to_owned());
                self.mode = Mode::Question(lock);
                Action::Nothing
            }
        }
    }

    fn edit(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => return,
            KeyCode::Esc => {
                self.filter.clear();
                return;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
        self.mode = Mode::Filter;
        self.selected = 0;
    }

    /// The lock that commands are about.
    fn chosen(&self) -> Option<LockKey> {
        match &self.page {
            Page::Details(key, _) => Some(key.clone()),
            Page::List => self
                .rows()
                .get(self.selected)
                .map(|(lock, _)| lock.key.clone()),
        }
    }
}

fn rate(count: usize, seconds: f64) -> f64 {
    number(count) / seconds
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn number(count: usize) -> f64 {
    count as f64
}
