//! The values that are words, numbers or names: one function for each argument.

use proc_macro2::{Ident, Span};
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Path, Result, UnOp};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Exclusive,
    Read,
    Write,
}

/// How many may hold the lock or wait for it, or how many permits are taken.
pub(crate) enum Count {
    Number(u32, Span),
    Expr(Expr),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    Detached,
    Confirmed,
}

/// What happens to the body when the lock is lost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLost {
    Cancel,
    Notify,
}

/// The message about a number that lets nobody in.
pub(crate) fn too_few(name: &str) -> String {
    let meaning = match name {
        "max_waiters" => "how many may wait for the lock, and nobody waits with `wait = \"0s\"`",
        "take" => "how many of the `permits` a call takes",
        _ => "how many may hold the lock at once",
    };
    let example = example(name);
    format!("`{name}` is {meaning}: write at least 1, as in `{name} = {example}`")
}

fn example(name: &str) -> u32 {
    match name {
        "max_waiters" => 8,
        "take" => 2,
        _ => 4,
    }
}

pub(crate) fn renew(input: ParseStream<'_>) -> Result<bool> {
    truth(
        input,
        "`renew` is `true` or `false`: write `renew = false` for a lease of fixed length",
    )
}

pub(crate) fn reentrant(input: ParseStream<'_>) -> Result<bool> {
    truth(
        input,
        "`reentrant` is `true` or `false`: write `reentrant = true` to let the body take its own lock again",
    )
}

pub(crate) fn mode(input: ParseStream<'_>) -> Result<Mode> {
    let modes = [
        ("exclusive", Mode::Exclusive),
        ("read", Mode::Read),
        ("write", Mode::Write),
    ];
    one_of(
        &modes,
        input,
        "`mode` is `\"exclusive\"` (one at a time), `\"read\"` (readers share) or `\"write\"` (a writer is alone)",
    )
}

pub(crate) fn release(input: ParseStream<'_>) -> Result<Release> {
    let releases = [
        ("detached", Release::Detached),
        ("confirmed", Release::Confirmed),
    ];
    one_of(
        &releases,
        input,
        "`release` is `\"detached\"` (return at once) or `\"confirmed\"` (wait for the server's answer)",
    )
}

pub(crate) fn on_lost(input: ParseStream<'_>) -> Result<OnLost> {
    let reactions = [("cancel", OnLost::Cancel), ("notify", OnLost::Notify)];
    one_of(
        &reactions,
        input,
        "`on_lost` is `\"cancel\"` (stop the body) or `\"notify\"` (let it run on, and ask its guard)",
    )
}

pub(crate) fn count(name: &str, input: ParseStream<'_>) -> Result<Count> {
    let value = expression(name, input)?;
    let message = match &value {
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => match number.base10_parse() {
            // A zero is refused later, with or without a suffix.
            Ok(count) if count == 0 || number.suffix().is_empty() => {
                return Ok(Count::Number(count, number.span()));
            }
            Ok(count) => {
                format!("`{name}` takes its number without a suffix: write `{name} = {count}`")
            }
            Err(_) => format!("these are too many `{name}`: write at most {}", u32::MAX),
        },
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) if text.value().parse::<u32>().is_ok() => {
            let number = text.value();
            format!("`{name}` is a number without quotes: write `{name} = {number}`")
        }
        Expr::Lit(_) => {
            let example = example(name);
            format!("`{name}` is a number: write for example `{name} = {example}`")
        }
        Expr::Unary(negative) if matches!(negative.op, UnOp::Neg(_)) => too_few(name),
        _ => return Ok(Count::Expr(value)),
    };
    Err(Error::new_spanned(value, message))
}

pub(crate) fn ticket(input: ParseStream<'_>) -> Result<Expr> {
    match expression("ticket", input)? {
        literal @ Expr::Lit(_) => Err(Error::new_spanned(
            literal,
            "`ticket` is an expression for the `Ticket` that this function adopts: write for example `ticket = job.ticket`",
        )),
        ticket => Ok(ticket),
    }
}

pub(crate) fn on_error(input: ParseStream<'_>) -> Result<Expr> {
    match expression("on_error", input)? {
        handler @ (Expr::Closure(_) | Expr::Path(_)) => Ok(handler),
        other => Err(Error::new_spanned(
            other,
            "`on_error` is a function from `LockError` to what this function returns: write `on_error = |error| …` or its path",
        )),
    }
}

pub(crate) fn guard(input: ParseStream<'_>) -> Result<Ident> {
    if input.peek(syn::Ident) {
        return input.parse();
    }
    refuse(
        input,
        "`guard` is the name that the lock gets in the body: write `guard = lock`",
    )
}

pub(crate) fn krate(input: ParseStream<'_>) -> Result<Path> {
    if input.peek(Lit) {
        return refuse(
            input,
            "`crate` is a path without quotes: write `crate = my_crate::lock_runtime`",
        );
    }
    Path::parse_mod_style(input)
}

/// The value of one of these quoted words.
fn one_of<T: Copy>(words: &[(&str, T)], input: ParseStream<'_>, message: &str) -> Result<T> {
    if let Ok(Lit::Str(text)) = input.fork().parse()
        && let Some((_, meant)) = words.iter().find(|(word, _)| text.value() == *word)
    {
        input.parse::<LitStr>()?;
        return Ok(*meant);
    }
    refuse(input, message)
}

fn truth(input: ParseStream<'_>, message: &str) -> Result<bool> {
    match input.fork().parse() {
        Ok(Lit::Bool(truth)) => {
            input.parse::<Lit>()?;
            Ok(truth.value)
        }
        _ => refuse(input, message),
    }
}

/// The next expression, without the invisible group that `macro_rules!` may put around it.
pub(crate) fn expression(name: &str, input: ParseStream<'_>) -> Result<Expr> {
    let start = input.span();
    let incomplete = |error| Error::new(start, format!("`{name}` has no complete value: {error}"));
    let mut expr = input.parse().map_err(incomplete)?;
    while let Expr::Group(group) = expr {
        expr = *group.expr;
    }
    Ok(expr)
}

/// An error about the whole value, not only its first token.
pub(crate) fn refuse<T>(input: ParseStream<'_>, message: &str) -> Result<T> {
    let start = input.span();
    Err(match input.parse::<Expr>() {
        Ok(value) => Error::new_spanned(value, message),
        Err(_) => Error::new(start, message),
    })
}
