//! The events, in the document that lists them and where they are emitted.

use crate::repository::{read, rows_of_table, rust_below};

#[test]
fn every_event_is_documented() {
    let emitted = emitted(&rust_below("lock-runtime/src"));
    let documented = documented(&read("docs/watching.md"));
    assert!(!emitted.is_empty(), "no event is found in the source");
    for event in &emitted {
        assert!(documented.contains(event), "not documented: {event:?}");
    }
    for event in &documented {
        assert!(emitted.contains(event), "not emitted: {event:?}");
    }
}

#[test]
fn an_event_that_is_emitted_otherwise_is_noticed() {
    let source = r#"
        event!([] warn, lease.terms, "stop", fence = lease.fence(1, 2));
        event!($($parent)* no event);
        // info!("no event either")
        info!(target: "lock_runtime", parent: None, connection, error = %cause, "down");
    "#;
    let tables = "| event of an acquisition | level | other fields |\n|---|---|---|\n| `stop` | warn | `fence` | why |\n\n\
        | other event | level | fields |\n|---|---|---|\n| `down` | warn | `connection` | why |\n";
    let (emitted, documented) = (emitted(source), documented(tables));
    assert_eq!(emitted.len(), 2);
    assert_eq!(emitted[0], documented[0]);
    assert_eq!(emitted[1].level, "info");
    assert_eq!(emitted[1].fields, ["connection", "error"]);
    assert_eq!(documented[1].level, "warn");
}

#[derive(Debug, PartialEq)]
struct Event {
    name: String,
    level: String,
    fields: Vec<String>,
}

/// The fields of every event of an acquisition, beside its `id`.
const OF_AN_ACQUISITION: [&str; 3] = ["key", "function", "template"];

/// The rows of both tables of events.
fn documented(source: &str) -> Vec<Event> {
    let event = |row: &&str, of_all: &[&str]| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let in_backticks = cells[3].split('`').skip(1).step_by(2);
        let fields = of_all.iter().copied().chain(in_backticks);
        Event {
            name: cells[1].trim_matches('`').to_owned(),
            level: cells[2].to_owned(),
            fields: fields.map(str::to_owned).collect(),
        }
    };
    let of_an_acquisition = rows_of_table(source, "", "event of an acquisition");
    let others = rows_of_table(source, "", "other event");
    let own = of_an_acquisition
        .iter()
        .map(|row| event(row, &OF_AN_ACQUISITION));
    own.chain(others.iter().map(|row| event(row, &[])))
        .collect()
}

/// What the macros of `tracing`, and `event!` for those of one acquisition, are called with.
fn emitted(source: &str) -> Vec<Event> {
    let lines = source.lines().map(str::trim_start);
    let code: String = lines.filter(|line| !line.starts_with("//")).collect();
    let mut events = Vec::new();
    for name in ["event", "trace", "debug", "info", "warn", "error"] {
        let opening = format!("{name}!(");
        let calls = code.match_indices(&opening).filter(|(at, _)| {
            let before = code[..*at].chars().next_back();
            before.is_none_or(|before| !before.is_alphanumeric() && before != '_' && before != '$')
        });
        let arguments = calls.map(|(at, _)| arguments(&code[at + opening.len()..]));
        // In the definition of a macro nothing is emitted.
        let arguments = arguments.filter(|arguments| !arguments.concat().contains('$'));
        events.extend(arguments.map(|arguments| event(name, &arguments)));
    }
    events
}

fn event(name: &str, arguments: &[String]) -> Event {
    let of_one_acquisition = name == "event";
    let level = if of_one_acquisition {
        arguments[0].trim_start_matches("[]").trim()
    } else {
        name
    };
    let quoted = |argument: &&String| argument.starts_with('"');
    let name = arguments.iter().find(quoted).expect("an event has a name");
    let mut fields = Vec::new();
    if of_one_acquisition {
        fields.extend(OF_AN_ACQUISITION.map(str::to_owned));
    }
    // The first ones of `event!` are the level and the terms.
    let rest = arguments
        .iter()
        .skip(if of_one_acquisition { 2 } else { 0 });
    let field = |argument: &String| {
        let field = argument.split(" = ").next()?;
        let is_name = field.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_name.then(|| field.to_owned())
    };
    fields.extend(rest.filter_map(field));
    Event {
        name: name.trim_matches('"').to_owned(),
        level: level.to_owned(),
        fields,
    }
}

/// What stands between commas up to the closing parenthesis.
fn arguments(code: &str) -> Vec<String> {
    let mut depth = 0;
    let mut arguments = vec![String::new()];
    for character in code.chars() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        arguments.last_mut().expect("there is one").push(character);
    }
    let trimmed = arguments.iter().map(|argument| argument.trim().to_owned());
    trimmed.filter(|argument| !argument.is_empty()).collect()
}
