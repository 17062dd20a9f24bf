//! An open connection: sends calls, and tells of their answers in the same order.
//!
//! The calls of a turn go as one query of several statements, or as several queries if there are many. The next query goes
//! when all of it is answered: not every server and proxy reads ahead. An error ends a query, and what is behind it goes
//! again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::dialer::Opened;
use super::wire::Wire;
use crate::backend::mysql::protocol::answer::{Answer, Gathering};
use crate::backend::mysql::protocol::call::Call;
use crate::backend::mysql::protocol::packet::strange;
use crate::backend::sql::time_limit::is_short;
use crate::backend::transport::silence::Silence;
use crate::base::clock::Moment;
use crate::types::error::Cause;

/// The longest query of several calls, in bytes: below any usual `max_allowed_packet`, beyond which a server refuses all of a
/// query.
const MOST: usize = 256 << 10;

pub(super) struct Open<T> {
    wire: Wire,
    in_flight: Option<Flight<T>>,
    /// The calls that go with the next query, before all others.
    urgent: VecDeque<(Call, T)>,
    /// Those that go with one of the next ones.
    unsent: VecDeque<(Call, T)>,
    /// Of the first call in flight.
    gathering: Gathering,
    /// Why the connection is dropped with the next poll.
    useless: Option<Cause>,
}

/// Calls that were written together and have not all been answered.
struct Flight<T> {
    at: Moment,
    calls: VecDeque<(Call, T)>,
}

impl<T> Flight<T> {
    /// Only the time limits of calls without an answer count.
    fn answer_by(&self, silence: &Silence) -> Option<Moment> {
        let timeouts = self.calls.iter().map(|(call, _)| call.timeout);
        Some(silence.limit(self.at, timeouts.min()?))
    }
}

impl<T> Open<T> {
    pub(super) fn new(opened: Opened) -> Self {
        Self {
            wire: opened.wire,
            in_flight: None,
            urgent: VecDeque::new(),
            unsent: VecDeque::new(),
            gathering: Gathering::default(),
            useless: None,
        }
    }

    pub(super) fn awaits_answer(&self) -> bool {
        self.is_in_flight() || self.has_unsent()
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || !self.urgent.is_empty()
    }

    /// Until when an answer must come in.
    pub(super) fn answer_by(&self, silence: &Silence) -> Option<Moment> {
        self.in_flight.as_ref()?.answer_by(silence)
    }

    /// A call goes with one of the next queries.
    pub(super) fn send(&mut self, call: Call, to: T) {
        self.unsent.push_back((call, to));
    }

    /// A call goes before all others that are not urgent.
    pub(super) fn send_first(&mut self, call: Call, to: T) {
        self.urgent.push_back((call, to));
    }

    /// Takes back calls that are not in flight.
    pub(super) fn take_unsent(&mut self, such: impl Fn(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        for calls in [&mut self.urgent, &mut self.unsent] {
            let all = std::mem::take(calls).into_iter();
            let (these, others): (VecDeque<_>, _) = all.partition(|(_, to)| such(to));
            taken.extend(these.into_iter().map(|(_, to)| to));
            *calls = others;
        }
        taken
    }

    /// Begins the next query, unless one is in flight; `false` if there is none to begin.
    pub(super) fn begin(&mut self, now: Moment) -> bool {
        if self.is_in_flight() || !self.has_unsent() {
            return false;
        }
        self.urgent.append(&mut self.unsent);
        std::mem::swap(&mut self.urgent, &mut self.unsent);
        let calls = next_flight(&mut self.unsent);
        let texts: Vec<_> = calls.iter().map(|(call, _)| &*call.text).collect();
        self.wire.query(&texts.join(";"));
        self.in_flight = Some(Flight { at: now, calls });
        true
    }

    /// Writes what has begun and reads what has come in.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        self.wire.poll(cx);
    }

    /// The next answer, if one has come in whole; an error if the connection cannot be used any more.
    pub(super) fn incoming(&mut self) -> Result<Option<(T, Answer)>, Cause> {
        if let Some(cause) = self.useless.take() {
            return Err(cause);
        }
        loop {
            let Some((_, payload)) = self.wire.payload().map_err(broken)? else {
                return Ok(None);
            };
            let flight = self.in_flight.as_mut();
            let flight = flight.ok_or_else(|| broken(strange()))?;
            let first = flight.calls.front().ok_or_else(|| broken(strange()))?;
            let answer = self.gathering.take(&payload, first.0.is_procedure);
            if let Some(answer) = answer.map_err(broken)? {
                return self.answered(answer).map(Some);
            }
        }
    }

    fn answered(&mut self, answer: Answer) -> Result<(T, Answer), Cause> {
        let flight = self.in_flight.as_mut();
        let first = flight.and_then(|it| it.calls.pop_front());
        let (_, to) = first.ok_or_else(|| broken(strange()))?;
        if let Err(error) = &answer {
            // What is behind it was not carried out.
            if let Some(mut rest) = self.in_flight.take() {
                rest.calls.append(&mut self.unsent);
                self.unsent = rest.calls;
            }
            if error.is_of_another_server() || error.is_interruption() {
                self.useless = Some(Arc::new(error.clone()));
            }
        }
        self.in_flight.take_if(|it| it.calls.is_empty());
        Ok((to, answer))
    }

    /// The calls that have not been answered.
    pub(super) fn unanswered(&mut self) -> Vec<T> {
        let calls = self.in_flight.take().into_iter().flat_map(|it| it.calls);
        let calls = calls.chain(self.urgent.drain(..));
        let calls = calls.chain(self.unsent.drain(..));
        calls.map(|(_, to)| to).collect()
    }

    /// Says good-bye as far as that needs no waiting.
    pub(super) fn close(&mut self) {
        self.wire.quit();
        self.wire.poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// Takes the first calls whose texts fit into one query, and at least one call. Those that cannot wait for a row go behind none
/// that can.
fn next_flight<T>(unsent: &mut VecDeque<(Call, T)>) -> VecDeque<(Call, T)> {
    let (mut size, mut may_wait) = (0, false);
    let mut fits = |(call, _): &(Call, T)| {
        size += call.text.len() + 1;
        may_wait |= !is_short(call.timeout);
        size <= MOST && may_wait != is_short(call.timeout)
    };
    let count = unsent.iter().take_while(|it| fits(it)).count();
    let rest = unsent.split_off(count.max(1));
    std::mem::replace(unsent, rest)
}

fn broken(error: std::io::Error) -> Cause {
    Arc::new(error)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_go_in_their_order_in_queries_that_a_server_takes() {
        let large = "x".repeat(MOST);
        let texts = ["a", &large, "b", "c", &large[2..], "d"];
        let calls = texts.map(|it| Call::statement(it, Duration::ZERO));
        let mut unsent: VecDeque<_> = calls.into_iter().zip(0..).collect();
        let mut flights = Vec::new();
        while !unsent.is_empty() {
            let flight = next_flight(&mut unsent);
            flights.push(flight.into_iter().map(|(_, it)| it).collect::<Vec<_>>());
        }
        assert_eq!(flights, [vec![0], vec![1], vec![2, 3], vec![4], vec![5]]);
    }

    fn calls(limits: &[u64]) -> VecDeque<(Call, u64)> {
        let call = |&limit| (Call::statement("a", Duration::from_millis(limit)), limit);
        limits.iter().map(call).collect()
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn a_call_that_cannot_wait_for_a_row_goes_behind_none_that_can() {
        let mut unsent = calls(&[750, 500, 1_000, 1_000, 500]);
        let flights = [next_flight(&mut unsent), next_flight(&mut unsent)];
        assert_eq!(flights.map(|it| it.len()), [4, 1]);
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn the_time_limit_of_an_answered_call_is_none_for_those_behind_it() {
        let at = Moment::from_nanos(1);
        let silence = Silence::since(at);
        let calls = calls(&[500, 1_000]);
        let mut flight = Flight { at, calls };
        let limit = |flight: &Flight<u64>| flight.answer_by(&silence);
        assert_eq!(limit(&flight), Some(at.after(Duration::from_millis(500))));
        flight.calls.pop_front();
        assert_eq!(limit(&flight), Some(at.after(Duration::from_millis(1_500))));
        flight.calls.pop_front();
        assert_eq!(limit(&flight), None);
    }
}
