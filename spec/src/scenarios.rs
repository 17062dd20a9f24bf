//! What is searched: who wants which locks, and how much goes wrong.

use crate::ordered;
use crate::queue::rules::Rules;
use crate::queue::{Fault, Plan, Scenario};

use Fault::{Crash, Delay, Disconnect, Forget, Restart, Stop};

/// All that may go wrong with the queue on Redis.
pub const FAULTS: [Fault; 6] = [Disconnect, Stop, Crash, Delay, Restart, Forget];

/// An acquisition of this client for this lock.
pub fn plan(client: u8, lock: u8) -> Plan {
    Plan {
        client,
        lock,
        ..Plan::default()
    }
}

/// Three clients and two locks. The first client takes both.
pub fn keys() -> Vec<Plan> {
    vec![
        plan(0, 0),
        Plan {
            after: Some(0),
            ..plan(0, 1)
        },
        plan(1, 0),
        plan(2, 1),
    ]
}

/// Three clients and one lock.
pub fn three() -> Vec<Plan> {
    vec![plan(0, 0), plan(1, 0), plan(2, 0)]
}

/// Two acquisitions of one client, and one of another.
pub fn chain() -> Vec<Plan> {
    vec![plan(0, 0), plan(0, 0), plan(1, 0)]
}

/// A lock that cools down, and another client.
pub fn cooldown() -> Vec<Plan> {
    vec![
        Plan {
            cools: true,
            ..plan(0, 0)
        },
        plan(1, 0),
    ]
}

/// A ticket, who adopts it, and who waits for the lock.
pub fn ticket() -> Vec<Plan> {
    vec![
        Plan {
            issues: true,
            ..plan(0, 0)
        },
        Plan {
            adopts: Some(0),
            ..plan(1, 0)
        },
        plan(2, 0),
    ]
}

/// Two that wait, and one that tries once.
pub fn tries() -> Vec<Plan> {
    vec![
        plan(0, 0),
        plan(1, 0),
        Plan {
            tries: true,
            ..plan(2, 0)
        },
    ]
}

/// Two clients and two locks. The first client takes both.
pub fn two_keys() -> Vec<Plan> {
    vec![
        plan(0, 0),
        Plan {
            after: Some(0),
            ..plan(0, 1)
        },
        plan(1, 1),
    ]
}

/// Two clients and one lock.
pub fn two() -> Vec<Plan> {
    vec![plan(0, 0), plan(1, 0)]
}

/// Times with which a short renewal cuts a lease by more than the margin.
pub fn short_renewals() -> Rules {
    Rules {
        claim: 2,
        ..Rules::default()
    }
}

/// Scenarios of the queue on Redis. All pairs of faults occur with waiters that give up, a cooldown, a ticket and two keys.
pub fn queue(short: bool) -> Vec<Scenario> {
    let without_quarantine = Rules {
        quarantine: false,
        ..Rules::default()
    };
    let kept = [Disconnect, Stop, Crash, Delay, Restart];
    if short {
        return vec![
            Scenario::new("two clients, waiters give up", two(), 1, &FAULTS).giving_up(),
            Scenario::new("a cooldown", cooldown(), 1, &FAULTS),
            Scenario::new("a ticket, three clients", ticket(), 1, &FAULTS),
            Scenario::new("two clients, two keys", two_keys(), 1, &FAULTS),
            Scenario::new(
                "a chain, two clients",
                chain(),
                1,
                &[Stop, Crash, Restart, Forget],
            ),
        ];
    }
    vec![
        Scenario::new("two clients, waiters give up", two(), 2, &FAULTS).giving_up(),
        Scenario::new("a cooldown", cooldown(), 2, &FAULTS),
        Scenario::new("a ticket, three clients", ticket(), 2, &FAULTS),
        Scenario::new("a try, three clients", tries(), 1, &FAULTS),
        Scenario::new("three clients, no quarantine", three(), 1, &kept).with(without_quarantine),
        Scenario::new("three clients, two keys", keys(), 2, &FAULTS),
        Scenario::new("a chain, two clients", chain(), 1, &FAULTS),
        Scenario::new(
            "a chain, processes and server",
            chain(),
            2,
            &[Stop, Crash, Restart, Forget],
        ),
        Scenario::new("a chain, short renewals", chain(), 2, &[Disconnect]).with(short_renewals()),
    ]
}

/// Scenarios of a store that orders its entries.
pub fn ordered(short: bool) -> Vec<ordered::Scenario> {
    use ordered::Fault::{CutOff, Disconnect, Stop};
    let faults = [Disconnect, Stop, CutOff];
    let scenario = |name, clients, count| {
        let scenario = ordered::Scenario::new(name, clients, count, &faults);
        ordered::Scenario {
            symmetric: true,
            gives_up: clients < 3,
            ..scenario
        }
    };
    if short {
        return vec![scenario("two clients, waiters give up", 2, 1)];
    }
    vec![
        scenario("two clients, waiters give up", 2, 2),
        scenario("three clients", 3, 2),
    ]
}
