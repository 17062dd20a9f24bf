//! Tickets: no text panics, and what is printed is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lock_runtime::{LockError, Ticket};

fuzz_target!(|text: &str| {
    if let Ok(ticket) = text.parse::<Ticket>() {
        let again: Result<Ticket, LockError> = ticket.to_string().parse();
        assert!(again.is_ok_and(|it| it == ticket), "{text}");
    }
});
