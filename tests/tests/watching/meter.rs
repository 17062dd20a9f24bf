//! A recorder of metrics that adds up what is recorded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Once};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

static VALUES: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());

/// What was recorded of one metric with certain labels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Value {
    /// Of a histogram, of all values together.
    pub(crate) sum: f64,
    /// How often something was recorded.
    pub(crate) count: u64,
}

/// From here on everything is added up, of all tests in the process: they tell their own by the labels.
pub(crate) fn measure() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        metrics::set_global_recorder(Meter).expect("there is no other one");
    });
}

/// What was recorded of a metric with these labels, in the order of the runtime: `lock_held template=…`.
pub(crate) fn value(metric: &str) -> Value {
    values().get(metric).copied().unwrap_or_default()
}

fn values() -> MutexGuard<'static, BTreeMap<String, Value>> {
    VALUES.lock().expect("nobody panics while holding it")
}

struct Meter;

impl Recorder for Meter {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Named::of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Named::of(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Named::of(key))
    }
}

/// A metric with its labels.
struct Named(String);

impl Named {
    fn of(key: &Key) -> Arc<Self> {
        let mut name = key.name().to_owned();
        for label in key.labels() {
            name.extend([" ", label.key(), "=", label.value()]);
        }
        Arc::new(Self(name))
    }

    fn add(&self, value: f64) {
        let mut values = values();
        let known = values.entry(self.0.clone()).or_default();
        known.sum += value;
        known.count += 1;
    }
}

impl CounterFn for Named {
    fn increment(&self, value: u64) {
        self.add(f64::from(u32::try_from(value).expect("steps are small")));
    }

    fn absolute(&self, _: u64) {
        unreachable!("counters are counted up");
    }
}

impl GaugeFn for Named {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, _: f64) {
        unreachable!("gauges go up and down");
    }
}

impl HistogramFn for Named {
    fn record(&self, value: f64) {
        self.add(value);
    }
}
