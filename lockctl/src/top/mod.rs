//! `lockctl top`: all locks, live.

mod state;
mod view;

use std::io::{IsTerminal as _, stdout};
use std::pin::Pin;
use std::time::Duration;

use lock_runtime::inspect::{Health, Overview, Status};
use lock_runtime::{LockError, LockKey, LockManager};
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::cli::{StoreArgs, TopArgs};
use crate::exit::{Done, Exit, Failure};
use crate::log;
use crate::output::{self, Output};
use crate::revoking::{self, Revocation, WAY_OUT};
use crate::since;
use crate::store::{self, connect};
use crate::words::{count, tame};

use state::{Action, State};

/// What one look at the store has found.
#[derive(Debug)]
struct Look {
    overview: Overview,
    health: Health,
    /// Of the lock whose details are shown.
    status: Option<Status>,
}

/// What a look asks for beside the list of locks.
#[derive(Debug, Default)]
struct Wish {
    /// The holders and the queue of this lock.
    details: Option<LockKey>,
    /// Whether to ask the holders of all locks: later looks ask those that hold for longest.
    since: bool,
}

type Looking = Pin<Box<dyn Future<Output = Result<Look, LockError>>>>;

pub(crate) async fn top(named: &StoreArgs, args: &TopArgs, output: &Output) -> Done {
    let locks = connect(named).await?;
    let mut state = State::new(args.sort, store::name(&locks));
    if output.is_json() {
        return stream(&locks, args, &mut state).await;
    }
    if !stdout().is_terminal() {
        let message = "top needs a terminal: `ls`, `watch` and `top --json` do not";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut keys = keys();
    let mut terminal = ratatui::try_init()?;
    let done = live(&locks, args, &mut state, &mut terminal, &mut keys).await;
    ratatui::restore();
    done
}

/// An object for each look.
async fn stream(locks: &LockManager, args: &TopArgs, state: &mut State) -> Done {
    let mut delay = Duration::ZERO;
    loop {
        let look = look(locks.clone(), args.pattern.clone(), delay, Wish::default()).await?;
        state.saw(Ok(look));
        output::object(&state.totals())?;
        delay = args.every;
    }
}

async fn live(
    locks: &LockManager,
    args: &TopArgs,
    state: &mut State,
    terminal: &mut ratatui::DefaultTerminal,
    keys: &mut mpsc::UnboundedReceiver<Event>,
) -> Done {
    let look_after = |delay, state: &State| -> Looking {
        let wish = Wish {
            details: state.details_of().cloned(),
            since: !state.has_looked(),
        };
        Box::pin(look(locks.clone(), args.pattern.clone(), delay, wish))
    };
    let mut looking = look_after(Duration::ZERO, state);
    loop {
        terminal.draw(|frame| view::draw(frame, state))?;
        let action = tokio::select! {
            key = keys.recv() => match key {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => pressed(key, state),
                Some(_) => Action::Nothing,
                None => Action::Quit,
            },
            look = &mut looking => {
                state.saw(look);
                looking = look_after(args.every, state);
                Action::Nothing
            }
        };
        match action {
            Action::Nothing => {}
            Action::Look => looking = look_after(Duration::ZERO, state),
            Action::Force(key, seen) => {
                let name = tame(key.as_str());
                let message = match revoking::revoke(locks, &key, &seen).await {
                    Ok(Revocation::Free) => format!("`{name}` was free"),
                    Ok(Revocation::Changed) => {
                        format!("`{name}` has another holder; {WAY_OUT}")
                    }
                    Ok(Revocation::Done(_, holders)) => format!(
                        "`{name}` was revoked from {}, whose work may overlap with the next",
                        count(holders, "holder")
                    ),
                    Err(error) => tame(&error.to_string()).into_owned(),
                };
                state.tell(message);
                looking = look_after(Duration::ZERO, state);
            }
            Action::Quit => return Ok(Exit::Success),
        }
    }
}

fn pressed(key: KeyEvent, state: &mut State) -> Action {
    state.pressed(key.code, key.modifiers)
}

async fn look(
    locks: LockManager,
    pattern: String,
    delay: Duration,
    wish: Wish,
) -> Result<Look, LockError> {
    sleep(delay).await;
    let health = locks.health().await;
    let mut overview = locks.overview(&pattern).await?;
    if wish.since {
        since::ask(&locks, overview.locks.iter_mut()).await;
    } else {
        since::ask_again(&locks, &mut overview.locks).await;
    }
    let status = match wish.details {
        Some(key) => {
            let mut status = locks.status(key).await?;
            log::complete(&locks, &mut status).await;
            Some(status)
        }
        None => None,
    };
    Ok(Look {
        overview,
        health,
        status,
    })
}

/// Reads the keyboard on a thread, which ends with the process.
fn keys() -> mpsc::UnboundedReceiver<Event> {
    let (sender, keys) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                break;
            }
        }
    });
    keys
}
