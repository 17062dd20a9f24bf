//! Refuses arguments that contradict each other.

use proc_macro2::Ident;
use syn::Error;

use crate::errors::Errors;
use crate::parse::args::Args;
use crate::parse::length::Length;
use crate::parse::values::{Count, Mode};

/// Reports each contradiction at the later of its two arguments, unless one of them has been
/// refused already.
pub(crate) fn check(args: &Args, refused: &[&str], errors: &mut Errors) {
    let conflicts = [
        mode(args),
        take(args),
        lease(args),
        holds(args),
        waiters(args),
    ];
    for (pair, message) in conflicts.into_iter().flatten().chain(ticket(args)) {
        let is_of_pair = |name: &&Ident| pair.iter().any(|one| **name == *one);
        let later = args.names.iter().rev().find(is_of_pair);
        if let Some(later) = later.filter(|_| !pair.iter().any(|one| refused.contains(one))) {
            errors.push(Error::new(later.span(), message));
        }
    }
}

type Conflict = ([&'static str; 2], String);

fn mode(args: &Args) -> Option<Conflict> {
    args.permits.as_ref()?;
    let (mode, why) = match args.mode? {
        Mode::Exclusive => ("exclusive", "permits let several in"),
        Mode::Read => ("read", "readers share without a limit"),
        Mode::Write => ("write", "a writer is alone, and permits let several in"),
    };
    let message = format!("`mode = \"{mode}\"` and `permits` {}", exclude(why));
    Some((["mode", "permits"], message))
}

fn take(args: &Args) -> Option<Conflict> {
    let message = match (args.take.as_ref()?, args.permits.as_ref()) {
        (_, None) if args.ticket.is_some() || args.names.iter().any(|name| name == "permits") => {
            return None;
        }
        (_, None) => {
            "`take` is how many of the `permits` a call takes: write both, as in `permits = 4, take = 2`"
                .to_owned()
        }
        (Count::Number(take, _), Some(Count::Number(permits, _))) if take > permits => format!(
            "a `take` of {take} is more than {permits} `permits`, so that nobody could take them: write at most `take = {permits}`"
        ),
        _ => return None,
    };
    Some((["take", "permits"], message))
}

fn lease(args: &Args) -> Option<Conflict> {
    args.max_hold
        .as_ref()
        .filter(|_| args.renew == Some(false))?;
    let why = exclude("a fixed lease ends at its `ttl`");
    let message = format!("`renew = false` and `max_hold` {why}");
    Some((["renew", "max_hold"], message))
}

fn holds(args: &Args) -> Option<Conflict> {
    match (args.min_hold.as_ref()?, args.max_hold.as_ref()?) {
        (Length::Millis(min, _), Length::Millis(max, _)) if min > max => {
            let message = format!(
                "a `min_hold` of {min} is longer than a `max_hold` of {max}: shorten the one or lengthen the other"
            );
            Some((["min_hold", "max_hold"], message))
        }
        _ => None,
    }
}

fn waiters(args: &Args) -> Option<Conflict> {
    args.max_waiters.as_ref()?;
    match args.wait.as_ref()? {
        Length::Millis(wait, _) if wait.0 == 0 => {
            let why = exclude("nobody waits who tries once");
            let message = format!("`wait = \"{wait}\"` and `max_waiters` {why}");
            Some((["wait", "max_waiters"], message))
        }
        _ => None,
    }
}

fn ticket(args: &Args) -> impl Iterator<Item = Conflict> {
    let name = "the ticket names its lock";
    let kind = "the lock is held as its former holder held it";
    let others = [
        ("key", args.keys.is_some(), name),
        ("mode", args.mode.is_some(), kind),
        ("permits", args.permits.is_some(), kind),
        ("take", args.take.is_some(), kind),
        (
            "reentrant",
            args.reentrant == Some(true),
            "a ticket is adopted, and does not re-enter a lock",
        ),
        (
            "max_waiters",
            args.max_waiters.is_some(),
            "an adopter does not wait in the queue",
        ),
    ];
    let given = others
        .into_iter()
        .filter(|(_, given, _)| *given && args.ticket.is_some());
    given.map(|(other, _, why)| {
        let message = format!("`ticket` and `{other}` {}", exclude(why));
        (["ticket", other], message)
    })
}

fn exclude(why: &str) -> String {
    format!("exclude each other: {why}; keep one of them")
}
