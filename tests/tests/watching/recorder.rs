//! A subscriber that keeps every event and every span of the runtime.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, Once};
use std::time::Duration;

use tests::eventually;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static SEEN: Mutex<Seen> = Mutex::new(Seen {
    events: Vec::new(),
    spans: Vec::new(),
});

thread_local! {
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

struct Seen {
    events: Vec<Sighting>,
    spans: Vec<Sighting>,
}

/// An event, or a span.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) name: String,
    pub(crate) level: Level,
    pub(crate) fields: Fields,
    /// The name of the span that it is in.
    pub(crate) parent: Option<String>,
    /// Whether it has ended, if it is a span.
    pub(crate) closed: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(BTreeMap<String, String>, BTreeSet<&'static str>);

impl Fields {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A number as OpenTelemetry has them, with a sign.
    pub(crate) fn signed(&self, name: &str) -> u64 {
        assert!(self.1.contains(name), "`{name}` in {self:?}");
        self.number(name)
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        let text = self.get(name);
        let number = text.and_then(|text| text.parse().ok());
        number.unwrap_or_else(|| panic!("`{name}` is no number in {self:?}"))
    }
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.to_string());
        self.1.insert(field.name());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

/// From here on everything is kept, of all tests in the process: they tell their own by the key.
pub(crate) fn record() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        tracing::subscriber::set_global_default(Recorder).expect("there is no other one");
    });
}

/// What has happened to the lock of this name.
pub(crate) fn events(key: &str) -> Vec<Sighting> {
    let seen = seen();
    let about = seen
        .events
        .iter()
        .filter(|it| it.fields.get("key") == Some(key));
    about.cloned().collect()
}

/// The first event of this name about the lock, which may be on its way.
pub(crate) async fn event(key: &str, name: &str) -> Sighting {
    let find = || events(key).into_iter().find(|it| it.name == name);
    eventually(Duration::from_secs(20), async || find().is_some()).await;
    find().expect("it was there")
}

/// The events about the store at this address.
pub(crate) fn at_store(address: &str) -> Vec<Sighting> {
    let seen = seen();
    let about = seen.events.iter().filter(|it| {
        let store = it.fields.get("store");
        store.is_some_and(|store| store.ends_with(address))
    });
    about.cloned().collect()
}

/// The first event of this name whose `error` says this, as soon as there is one.
pub(crate) async fn failure(name: &str, says: &str) -> Sighting {
    let find = || {
        let seen = seen();
        let mut events = seen.events.iter();
        let of_it = |it: &&Sighting| {
            let error = it.fields.get("error");
            it.name == name && error.is_some_and(|error| error.contains(says))
        };
        events.find(of_it).cloned()
    };
    eventually(Duration::from_secs(20), async || find().is_some()).await;
    find().expect("it was there")
}

/// The spans about the lock of this name.
pub(crate) fn spans(key: &str) -> Vec<Sighting> {
    let seen = seen();
    let about = seen
        .spans
        .iter()
        .filter(|it| it.fields.get("lock.key") == Some(key));
    about.cloned().collect()
}

/// The number of the span that this thread is in.
pub(crate) fn inside() -> Option<u64> {
    ENTERED.with_borrow(|entered| entered.last().copied())
}

fn seen() -> MutexGuard<'static, Seen> {
    SEEN.lock().expect("nobody panics while holding it")
}

fn number(id: &Id) -> usize {
    usize::try_from(id.into_u64()).expect("there are few spans") - 1
}

struct Recorder;

impl Recorder {
    fn parent(is_contextual: bool, explicit: Option<&Id>, seen: &Seen) -> Option<String> {
        let id = match explicit {
            Some(id) => Some(id.clone()),
            None => inside().filter(|_| is_contextual).map(Id::from_u64),
        };
        id.map(|id| seen.spans[number(&id)].name.clone())
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        matches!(metadata.target(), "lock_runtime" | "watching")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut seen = seen();
        let parent = Self::parent(span.is_contextual(), span.parent(), &seen);
        seen.spans.push(Sighting {
            name: span.metadata().name().to_owned(),
            level: *span.metadata().level(),
            fields,
            parent,
            closed: false,
        });
        Id::from_u64(seen.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut seen().spans[number(span)].fields);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut seen = seen();
        let parent = Self::parent(event.is_contextual(), event.parent(), &seen);
        seen.events.push(Sighting {
            name: fields.get("message").unwrap_or_default().to_owned(),
            level: *event.metadata().level(),
            fields,
            parent,
            closed: false,
        });
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        let last = ENTERED.with_borrow_mut(Vec::pop);
        assert_eq!(last, Some(span.into_u64()), "spans are left inside out");
    }

    fn try_close(&self, span: Id) -> bool {
        // A span is not cloned here: its only handle is gone.
        seen().spans[number(&span)].closed = true;
        true
    }
}
