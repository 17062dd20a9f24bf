//! The worker processes of one measurement, started and timed together.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde::de::DeserializeOwned;
use support::Worker;
use tokio::time::sleep;

use crate::command::own_program;
use crate::foreign::Foreign;
use crate::systems::System;
use crate::worker::{Outcome, Spec};

/// A worker that is ready.
#[derive(Debug)]
pub(crate) struct Hand(Worker);

impl Hand {
    /// Starts a worker and waits until it is ready.
    pub(crate) async fn start(spec: &Spec) -> Self {
        let (program, args) = program(spec.system);
        let mut worker = Worker::spawn(&program, args).await;
        let spec = serde_json::to_string(spec).expect("JSON");
        worker.send(&spec).await;
        let mut hand = Self(worker);
        let ready: String = hand.answer().await;
        assert_eq!(ready, "ready", "a word that was not expected");
        hand
    }

    /// Gives an order and waits for the answer.
    pub(crate) async fn ask<T: DeserializeOwned>(&mut self, order: &str) -> T {
        self.0.send(order).await;
        self.answer().await
    }

    async fn answer<T: DeserializeOwned>(&mut self) -> T {
        let line = self.0.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

/// Several workers.
#[derive(Debug)]
pub(crate) struct Fleet(Vec<Hand>);

impl Fleet {
    /// Starts a worker for each, and waits until all are ready.
    pub(crate) async fn start(specs: impl IntoIterator<Item = Spec>) -> Self {
        let mut hands = Vec::new();
        for spec in specs {
            hands.push(Hand::start(&spec).await);
        }
        Self(hands)
    }

    /// Lets all of them work for some time.
    pub(crate) async fn go(&mut self, time: Duration) {
        for hand in &mut self.0 {
            hand.0.send("go").await;
        }
        sleep(time).await;
    }

    /// Stops the work and collects the outcomes.
    pub(crate) async fn stop(mut self) -> Vec<Outcome> {
        for hand in &mut self.0 {
            hand.0.send("stop").await;
        }
        let mut outcomes = Vec::new();
        for hand in &mut self.0 {
            outcomes.push(hand.answer().await);
        }
        outcomes
    }
}

/// One worker that works for some time.
pub(crate) async fn run(spec: Spec, time: Duration) -> Outcome {
    run_all([spec], time).await.pop().expect("one worker")
}

/// Workers that work at the same time.
pub(crate) async fn run_all(specs: impl IntoIterator<Item = Spec>, time: Duration) -> Vec<Outcome> {
    let mut fleet = Fleet::start(specs).await;
    fleet.go(time).await;
    fleet.stop().await
}

/// The outcome of a measurement, or `None` if it panicked.
pub(crate) async fn attempt<T>(measurement: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(measurement).catch_unwind().await.ok()
}

fn program(system: System) -> (String, Vec<String>) {
    Foreign::of(system).map_or_else(|| (own_program(), vec!["worker".into()]), Foreign::command)
}
