//! Sorts the instructions that callgrind counted into stages, by their source files and those of their callers.

use std::collections::BTreeMap;

/// What the instructions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Requests, guards, the driver's turns and operations, leases.
    Operations,
    /// Who waits for which key, and what the server said to them.
    Queue,
    /// Calls, made into bytes.
    Encoding,
    /// Connections: what is written together, which answer is whose, reading and writing.
    Connection,
    /// Bytes, made into answers.
    Decoding,
    /// The executor, its channels and timers: wake-ups.
    Executor,
    /// What none of them called.
    Rest,
}

impl Stage {
    /// The name of the stage.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Operations => "operations and leases",
            Self::Queue => "queue",
            Self::Encoding => "encoding",
            Self::Connection => "connection",
            Self::Decoding => "decoding",
            Self::Executor => "executor, channels, timers",
            Self::Rest => "rest",
        }
    }

    /// The first part of a path that is known; none for the standard library, the allocator and the like.
    fn of(file: &str) -> Option<Self> {
        const KNOWN: [(&str, Stage); 17] = [
            ("/queue/protocol/message", Stage::Decoding),
            ("/queue/protocol/ahead", Stage::Decoding),
            ("/backend/queue/", Stage::Queue),
            ("/backend/claims", Stage::Queue),
            ("/redis/protocol/reply", Stage::Decoding),
            ("/redis/protocol/", Stage::Encoding),
            ("/backend/token", Stage::Encoding),
            ("/backend/redis/", Stage::Connection),
            ("lock-runtime/src/", Stage::Operations),
            ("/src/parser.rs", Stage::Decoding),
            ("/combine-", Stage::Decoding),
            ("/src/cmd.rs", Stage::Encoding),
            ("/itoa-", Stage::Encoding),
            ("/redis-", Stage::Connection),
            ("/tokio-util-", Stage::Connection),
            ("/bytes-", Stage::Connection),
            ("/tokio-", Stage::Executor),
        ];
        let known = KNOWN.iter().find(|(part, _)| file.contains(part));
        known.map(|(_, stage)| *stage)
    }
}

/// Instructions of each stage.
pub(crate) type Stages = BTreeMap<Stage, f64>;

/// A function as callgrind saw it.
#[derive(Debug, Default)]
struct Function {
    known: Stages,
    /// Instructions of files that are for no stage.
    unknown: f64,
    /// How much of it was called from a stage, and how much from code of no stage in a function.
    from_stages: Stages,
    from_functions: BTreeMap<String, f64>,
}

/// Counts the instructions of a profile by stage. What belongs to no stage belongs to the one that called it.
pub(crate) fn count(profile: &str) -> Stages {
    let functions = read(profile);
    let mut shares: BTreeMap<&str, Stages> = BTreeMap::new();
    // As deep as calls among such functions matter.
    for _ in 0..30 {
        let share = |(name, function): (&'_ String, &Function)| {
            let mut share = function.from_stages.clone();
            for (caller, cost) in &function.from_functions {
                for (stage, part) in shares.get(caller.as_str()).into_iter().flatten() {
                    *share.entry(*stage).or_default() += cost * part;
                }
            }
            let all: f64 = share.values().sum();
            for part in share.values_mut() {
                *part /= all;
            }
            (
                functions.get_key_value(name).expect("itself").0.as_str(),
                share,
            )
        };
        shares = functions.iter().map(share).collect();
    }
    let mut counts = Stages::new();
    for (name, function) in &functions {
        for (stage, cost) in &function.known {
            *counts.entry(*stage).or_default() += cost;
        }
        let share = &shares[name.as_str()];
        for (stage, part) in share {
            *counts.entry(*stage).or_default() += function.unknown * part;
        }
        if share.is_empty() {
            *counts.entry(Stage::Rest).or_default() += function.unknown;
        }
    }
    counts
}

/// Callgrind writes a name in full once and refers to it by number afterwards.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn read(&mut self, text: &str) -> String {
        let (number, name) = text.split_once(' ').unwrap_or((text, ""));
        if !name.is_empty() {
            self.0.insert(number.into(), name.into());
        }
        self.0.get(number).cloned().unwrap_or_default()
    }
}

fn read(profile: &str) -> BTreeMap<String, Function> {
    let (mut files, mut names) = (Names::default(), Names::default());
    let mut functions: BTreeMap<String, Function> = BTreeMap::new();
    let (mut own, mut here) = (None, None);
    let (mut current, mut called) = (String::new(), String::new());
    let mut call = false;
    for line in profile.lines() {
        if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse().ok());
            let (cost, stage): (f64, _) = (cost.unwrap_or(0.0), here.or(own));
            let whose = if call { &called } else { &current };
            let function = functions.entry(whose.clone()).or_default();
            *match (call, stage) {
                (true, Some(stage)) => function.from_stages.entry(stage).or_default(),
                (true, None) => function.from_functions.entry(current.clone()).or_default(),
                (false, Some(stage)) => function.known.entry(stage).or_default(),
                (false, None) => &mut function.unknown,
            } += cost;
            call = false;
            continue;
        }
        let Some((what, value)) = line.split_once('=') else {
            continue;
        };
        match what {
            "fl" => {
                own = Stage::of(&files.read(value));
                here = None;
            }
            "fi" | "fe" => here = Stage::of(&files.read(value)),
            "cfi" | "cfl" => drop(files.read(value)),
            "fn" => current = names.read(value),
            "cfn" => called = names.read(value),
            "calls" => call = true,
            _ => {}
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_no_stage_is_of_its_callers() {
        let profile = "\
fl=(1) /lock-runtime/src/driver/mod.rs\nfn=(1) turn\n1 10\ncfi=(2) malloc.c\ncfn=(2) malloc\ncalls=1 1\n+1 30\n\
fi=(3) /combine-4.6.9/src/parser/mod.rs\n5 7\n\n\
fl=(2)\nfn=(2)\n1 10\ncfn=(3) arena\ncalls=1 1\n+1 20\n\nfl=(2)\nfn=(3)\n1 20\n\nfl=(2)\nfn=(4) start\n1 3\n";
        let expected = [
            (Stage::Operations, 40.0),
            (Stage::Decoding, 7.0),
            (Stage::Rest, 3.0),
        ];
        assert_eq!(count(profile), Stages::from(expected));
    }
}
