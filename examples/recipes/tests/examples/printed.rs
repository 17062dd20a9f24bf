//! Runs the examples as their users do, in memory and on a Redis server, and reads what they print.

use std::process::{Command, Stdio};

use tests::RedisServer;

use crate::program::program;

/// What an example prints in memory, and on a server of its own.
async fn outputs(name: &str) -> [String; 2] {
    let server = RedisServer::start().await;
    [None, Some(server.url())].map(|url| {
        let mut command = Command::new(program(name));
        command
            .env_remove("LOCK_URL")
            .envs(url.map(|url| ("LOCK_URL", url)));
        let output = command.stderr(Stdio::inherit()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}: {text}", output.status);
        text
    })
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

/// The numbers in a line that begins like this.
fn numbers(text: &str, start: &str) -> Vec<u64> {
    let line = text.lines().find(|line| line.starts_with(start)).unwrap();
    let words = line.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

#[tokio::test]
async fn a_page_is_loaded_once() {
    for text in outputs("cache_stampede").await {
        assert!(numbers(&text, "without lock")[1] > 1, "{text}");
        assert_eq!(numbers(&text, "with lock"), [200, 1]);
    }
}

#[tokio::test]
async fn one_machine_of_three_runs_the_job() {
    for text in outputs("nightly_job").await {
        assert_eq!(count(&text, "the invoices are written"), 1, "{text}");
        assert_eq!(count(&text, "skipped"), 2, "{text}");
    }
}

#[tokio::test]
async fn no_transfer_is_lost() {
    for text in outputs("transfer").await {
        assert_ne!(numbers(&text, "without locks"), [950, 1050]);
        assert_eq!(numbers(&text, "with locks"), [950, 1050]);
    }
}

#[tokio::test]
async fn the_lead_is_handed_over_in_order() {
    for text in outputs("leader").await {
        let leads = text.lines().filter(|line| line.contains(" leads, "));
        let leaders: Vec<_> = leads
            .clone()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(leaders[0], "anna", "{text}");
        assert_eq!(
            leaders[3], "anna",
            "she went to the end of the queue\n{text}"
        );
        let tokens: Vec<u64> = leads.map(|line| numbers(line, "")[0]).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b), "{text}");
    }
}

#[tokio::test]
async fn four_calls_in_half_a_second_and_no_more() {
    for text in outputs("rate_limit").await {
        // A call begins after its permit was taken, on a busy machine a good while.
        assert!(numbers(&text, "five calls")[0] >= 250, "{text}");
    }
}

#[tokio::test]
async fn the_database_refuses_the_late_writer() {
    for text in outputs("fenced_write").await {
        assert_eq!(count(&text, "49 is refused"), 1, "{text}");
        assert!(text.ends_with("the stock is 48\n"), "{text}");
    }
}

#[tokio::test]
async fn a_worker_goes_on_under_the_lock_of_a_handler() {
    for text in outputs("background_job").await {
        let statuses = ["first", "second", "third"];
        let statuses = statuses.map(|upload| numbers(&text, upload)[2]);
        assert_eq!(statuses, [202, 409, 202], "{text}");
        assert_eq!(count(&text, "7 is encoded, fencing"), 1, "{text}");
        assert_eq!(count(&text, "7 is not encoded again"), 1, "{text}");
    }
}

#[tokio::test]
async fn a_document_is_locked_over_many_requests() {
    for text in outputs("editing_session").await {
        assert_eq!(count(&text, "bert cannot open it"), 1, "{text}");
        assert_eq!(count(&text, "bert saves too late"), 1, "{text}");
        assert_eq!(count(&text, "anna closes it: Porto\n"), 2, "{text}");
    }
}

#[tokio::test]
async fn no_lamp_is_sold_twice() {
    for text in outputs("quickstart").await {
        assert_eq!(numbers(&text, "with lock")[..3], [50, 0, 150], "{text}");
    }
}

#[tokio::test]
async fn a_report_that_has_run_cools_down() {
    for text in outputs("kinds").await {
        assert_eq!(count(&text, "it has run already"), 1, "{text}");
    }
}
