//! What holds in every state.

use stateright::Property;

use super::Scenario;
use super::client::Stage;
use super::world::{Action, World};
use crate::fair::{Fair, Memo, ends};
use crate::queue::properties::{
    FENCES_GROW, NO_LATE_POLL, NOBODY_IS_OVERTAKEN, NOBODY_WAITS_FOR_EVER, ONE_HOLDER,
};

/// All of them.
pub fn all() -> Vec<Property<Scenario>> {
    vec![
        Property::always(ONE_HOLDER, |scenario: &Scenario, world: &World| {
            world
                .clients
                .iter()
                .filter(|it| it.is_polled(scenario))
                .count()
                <= 1
        }),
        Property::always(NO_LATE_POLL, no_late_poll),
        Property::always(FENCES_GROW, |_, world: &World| !world.stale_fence),
        Property::always(NOBODY_WAITS_FOR_EVER, ends),
        Property::always(NOBODY_IS_OVERTAKEN, |_, world: &World| !world.overtaken),
    ]
}

/// The store has the session of every body that is polled.
fn no_late_poll(scenario: &Scenario, world: &World) -> bool {
    let mut polled = world.clients.iter().filter(|it| it.is_polled(scenario));
    polled.all(|client| world.store.sessions.iter().any(|it| it.id == client.id))
}

impl Fair for Scenario {
    fn next(&self, world: &World) -> Option<Action> {
        if world.store.cut_off.is_some() {
            return Some(Action::Rejoin);
        }
        for (number, client) in (0u8..).zip(&world.clients) {
            let link = &client.link;
            let due = [
                (link.stopped, Action::Resume(number)),
                (link.down, Action::Connect(number)),
                (!link.late.is_empty(), Action::Notice(number)),
                (!link.messages.is_empty(), Action::Read(number)),
                (!link.requests.is_empty(), Action::Run(number)),
                (client.stage == Stage::New, Action::Start(number)),
                (
                    matches!(client.stage, Stage::Held { .. }),
                    Action::Finish(number),
                ),
            ];
            if let Some((_, action)) = due.into_iter().find(|(due, _)| *due) {
                return Some(action);
            }
        }
        let is_over =
            world.clients.iter().all(|it| it.stage == Stage::Done) && world.store.queue.is_empty();
        (!is_over).then_some(Action::Tick)
    }

    fn memo(&self) -> &Memo {
        &self.memo
    }
}
