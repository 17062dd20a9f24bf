//! Refuses a guard in a task that the body spawns. The compiler would report a move out of a
//! borrow, and underline the attribute.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use syn::{Error, Result};

/// Functions whose argument must be `'static`.
const SPAWNERS: [&str; 3] = ["spawn", "spawn_blocking", "spawn_local"];

pub(crate) fn check(body: &Group, guard: &Ident) -> Result<()> {
    let mut uses = Vec::new();
    collect(body.stream(), guard, &mut uses);
    if uses.iter().any(Use::may_bind) {
        return Ok(());
    }
    match in_tasks(body.stream(), guard) {
        None => Ok(()),
        Some(span) => Err(Error::new(
            span,
            format!(
                "a spawned task may outlive the lock, so it cannot borrow `{guard}`: give it what it needs of it, as in `let token = {guard}.fencing_token();` before the task is spawned, or await the work in the body"
            ),
        )),
    }
}

/// The place where a task borrows the guard, as in `spawn(async move { guard.is_held() })`.
/// Methods are left to the compiler, since tasks of a scope may borrow.
fn in_tasks(tokens: TokenStream, guard: &Ident) -> Option<Span> {
    let trees: Vec<_> = tokens.into_iter().collect();
    trees.iter().enumerate().find_map(|(at, tree)| {
        let TokenTree::Group(group) = tree else {
            return None;
        };
        let mut uses = Vec::new();
        if ends_with_spawner(&trees[..at]) && is_task(group) {
            collect(group.stream(), guard, &mut uses);
        }
        let borrowed = uses.first().map(|it| it.span);
        borrowed.or_else(|| in_tasks(group.stream(), guard))
    })
}

fn ends_with_spawner(before: &[TokenTree]) -> bool {
    let [rest @ .., TokenTree::Ident(name)] = before else {
        return false;
    };
    let is_method = rest.last().is_some_and(|it| is_punct(it, '.'));
    !is_method && SPAWNERS.iter().any(|it| name == it)
}

/// Whether the only argument is deferred code: an `async` block or a closure.
fn is_task(arguments: &Group) -> bool {
    match arguments.stream().into_iter().next() {
        Some(TokenTree::Ident(keyword)) => keyword == "async" || keyword == "move",
        Some(other) => is_punct(&other, '|'),
        None => false,
    }
}

/// A place where a name stands that is neither a field nor a method.
struct Use {
    span: Span,
    calls_method: bool,
}

impl Use {
    /// Whether it may give the name another meaning, as `for lock in locks` does.
    fn may_bind(&self) -> bool {
        !self.calls_method
    }
}

fn collect(tokens: TokenStream, name: &Ident, uses: &mut Vec<Use>) {
    let trees: Vec<_> = tokens.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Ident(ident) if ident == name => {
                let is_member = at > 0 && is_punct(&trees[at - 1], '.');
                if !is_member {
                    uses.push(Use {
                        span: ident.span(),
                        calls_method: trees.get(at + 1).is_some_and(|it| is_punct(it, '.')),
                    });
                }
            }
            TokenTree::Group(group) => collect(group.stream(), name, uses),
            _ => {}
        }
    }
}

fn is_punct(tree: &TokenTree, char: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_borrows_the_guard_where_it_calls_a_method_of_it() {
        for (body, refused) in [
            (
                "tokio::spawn(async move { work(lock.fencing_token()).await });",
                true,
            ),
            (
                "if a { let task = spawn_blocking(move || println!(\"{}\", lock.is_held())); }",
                true,
            ),
            ("select! { x = spawn(async { lock.is_held() }) => x }", true),
            (
                "let token = lock.fencing_token(); spawn(async move { write(token) });",
                false,
            ),
            ("spawn(write(lock.fencing_token()));", false),
            ("spawn(async move { mutex.lock().await });", false),
            (
                "spawn(async move { let lock = mutex.take(); lock.is_held() });",
                false,
            ),
            (
                "let lock = lock.fencing_token(); spawn(async move { write(lock.get()).await });",
                false,
            ),
            (
                "spawn(async move { if let Some(lock) = it { lock.is_held() } });",
                false,
            ),
            (
                "for lock in locks { spawn(async move { lock.close().await }) }",
                false,
            ),
            (
                "locks.for_each(|lock| drop(spawn(async move { lock.close().await })));",
                false,
            ),
            (
                "match it { Some(lock) => spawn(async move { lock.close().await }), None => b }",
                false,
            ),
            ("scope.spawn(|| lock.is_held());", false),
            ("join!(async { lock.is_held() }, other());", false),
        ] {
            let body: TokenStream = format!("{{ {body} }}").parse().unwrap();
            let Some(TokenTree::Group(body)) = body.into_iter().next() else {
                panic!("a block");
            };
            let guard = Ident::new("lock", Span::call_site());
            assert_eq!(check(&body, &guard).is_err(), refused, "{body}");
        }
    }
}
