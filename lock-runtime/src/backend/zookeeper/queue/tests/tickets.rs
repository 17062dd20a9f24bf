//! Tickets that are issued and adopted, and what of it has no answer.

use super::*;
use crate::types::ticket_id::TicketId;

const TICKET: TicketId = TicketId(7);
const TIME: Duration = Duration::from_secs(60);

/// A holder that asks for a ticket, and the call that creates its node.
fn issuing() -> (Scene, Call) {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    scene.waits_behind(&[], 4);
    assert!(scene.is_granted());
    scene.queue.issue(ID, TICKET, TIME);
    let call = scene.calls().remove(0);
    (scene, call)
}

/// The name of the node of a ticket.
fn ticket() -> String {
    format!("x-{TICKET}-0000000004-ticket")
}

fn released(scene: &mut Scene) -> Option<bool> {
    match scene.outcomes().pop() {
        Some(Outcome::Released { result, .. }) => result.ok(),
        other => panic!("{other:?}"),
    }
}

fn adopt(scene: &mut Scene) {
    let terms = Terms {
        adopts: Some(Box::new(TICKET)),
        ..Terms::of(ID, "k", TIMEOUT)
    };
    scene.queue.acquire(scene.now, Arc::new(terms));
}

/// The answers to an adopter that looks for the node of its ticket, which is this old; what it
/// asks for then.
fn found(scene: &mut Scene, age: Duration) -> Vec<Call> {
    let mut calls = scene.calls();
    let look = calls.pop().unwrap();
    scene.reply(look, Ok(children(vec![ticket()], 9)));
    let mut calls = scene.calls();
    let read = calls.pop().unwrap();
    let written = i64::try_from(age.as_millis()).unwrap();
    let now = Stat {
        written,
        ..Stat::default()
    };
    scene.reply(calls.remove(0), Ok(Reply::Stat(now)));
    let data = entry::data(&format!("={TICKET} 1@host"), TIME);
    let stat = Stat::default();
    scene.reply(read, Ok(Reply::Data { data, stat }));
    scene.calls()
}

fn is_no_ticket(scene: &mut Scene) -> bool {
    matches!(scene.outcomes()[..], [Outcome::NoTicket { id: ID }])
}

#[test]
fn a_ticket_takes_the_place_of_its_holder_in_one_transaction() {
    let (mut scene, call) = issuing();
    let Op::Multi(parts) = &call.op else {
        panic!("{call:?}");
    };
    let [Op::Delete { .. }, Op::Create { path, data, mode }] = &parts[..] else {
        panic!("{parts:?}");
    };
    assert_eq!(*path, format!("/lock/k/{}", ticket()));
    assert_eq!(*mode, Mode::Persistent);
    let holder = entry::holder(data);
    assert!(holder.ticket && holder.remaining == Some(TIME));
    scene.reply(call, Ok(Reply::Parts(Vec::new())));
    assert_eq!(released(&mut scene), Some(true));
}

#[test]
fn whether_a_ticket_was_issued_is_asked_if_the_answer_was_lost() {
    for issued in [true, false] {
        let (mut scene, call) = issuing();
        scene.connect_again(vec![call], 0);
        let again = scene.calls().pop().unwrap();
        scene.reply(again, Err(Trouble::NoNode));
        assert!(scene.outcomes().is_empty(), "it is not known yet");
        let read = scene.calls().remove(0);
        let (data, stat) = (Vec::new(), Stat::default());
        let answer = if issued {
            Ok(Reply::Data { data, stat })
        } else {
            Err(Trouble::NoNode)
        };
        scene.reply(read, answer);
        assert_eq!(released(&mut scene), Some(issued));
    }
}

#[test]
fn who_takes_back_a_ticket_deletes_the_node_from_which_it_may_come_late() {
    let (mut scene, call) = issuing();
    let Op::Multi(parts) = &call.op else {
        panic!("{call:?}");
    };
    let [Op::Delete { path: former }, _]: [Op; 2] = parts.clone().try_into().unwrap() else {
        panic!("{parts:?}");
    };
    scene.queue.connected(scene.now, session(8, scene.now), 0);
    assert_eq!(released(&mut scene), None);
    adopt(&mut scene);
    let look = scene.calls().pop().unwrap();
    let name = former.rsplit('/').next().unwrap().to_owned();
    scene.reply(look, Ok(children(vec![name], 9)));
    let mut calls = scene.calls();
    let delete = Op::Delete { path: former };
    assert!(calls.iter().any(|it| it.op == delete), "{calls:?}");
    let look = calls.pop().unwrap();
    scene.reply(look, Ok(children(Vec::new(), 9)));
    assert!(is_no_ticket(&mut scene));
}

#[test]
fn a_waiter_of_ours_does_not_enter_behind_a_ticket() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    scene.waits_behind(&[], 4);
    assert!(scene.is_granted());
    let waiter = LeaseId(2);
    scene
        .queue
        .acquire(scene.now, Arc::new(Terms::of(waiter, "k", TIMEOUT)));
    let create = scene.calls().remove(0);
    let Op::Create { path, .. } = &create.op else {
        panic!("{create:?}");
    };
    let path = format!("{path}0000000005");
    scene.reply(create, Ok(Reply::Created { path }));
    let read = scene.calls().remove(0);
    let (data, stat) = (entry::data("somebody", TIMEOUT), Stat::default());
    scene.reply(read, Ok(Reply::Data { data, stat }));
    scene.outcomes();
    let own = scene.claim(ID).node.unwrap();
    scene.queue.issue(ID, TICKET, TIME);
    scene.calls();
    let (path, change) = (format!("/lock/k/{own}"), Change::Deleted);
    scene.queue.heard(&Message { change, path });
    let mut calls = scene.calls();
    assert!(matches!(calls[0].op, Op::Children { .. }), "{calls:?}");
    let mine = scene.claim(waiter).node.unwrap().to_string();
    scene.reply(calls.remove(0), Ok(children(vec![ticket(), mine], 99)));
    assert_eq!(scene.granted(), None);
}

#[test]
fn an_adopter_replaces_the_node_of_the_ticket() {
    let mut scene = Scene::new();
    adopt(&mut scene);
    let adopts = found(&mut scene, TIME / 2).remove(0);
    let Op::Multi(parts) = &adopts.op else {
        panic!("{adopts:?}");
    };
    let own = format!("x-{}-0000000004", scene.claim(ID).token);
    let delete = Op::Delete {
        path: format!("/lock/k/{}", ticket()),
    };
    let [first, Op::Create { path, mode, .. }] = &parts[..] else {
        panic!("{parts:?}");
    };
    assert_eq!((first, *mode), (&delete, Mode::Ephemeral));
    assert_eq!(*path, format!("/lock/k/{own}"));
    scene.reply(adopts, Ok(Reply::Parts(Vec::new())));
    let read = scene.calls().remove(0);
    let (data, stat) = (Vec::new(), owned_by(7));
    scene.reply(read, Ok(Reply::Data { data, stat }));
    assert!(scene.is_granted());
}

#[test]
fn a_ticket_that_has_ended_is_not_adopted_and_goes() {
    let mut scene = Scene::new();
    adopt(&mut scene);
    let calls = found(&mut scene, TIME * 2);
    assert!(matches!(
        calls[..],
        [Call {
            op: Op::Delete { .. },
            ..
        }]
    ));
    assert!(is_no_ticket(&mut scene));
}

#[test]
fn an_adopter_whose_answer_is_lost_finds_its_node() {
    let mut scene = Scene::new();
    adopt(&mut scene);
    let adopts = found(&mut scene, TIME / 2);
    scene.connect_again(adopts, 0);
    let look = scene.calls().pop().unwrap();
    let own = format!("x-{}-0000000004", scene.claim(ID).token);
    scene.reply(look, Ok(children(vec![own], 9)));
    let read = scene.calls().remove(0);
    let (data, stat) = (Vec::new(), owned_by(7));
    scene.reply(read, Ok(Reply::Data { data, stat }));
    assert!(scene.is_granted());
}

#[test]
fn an_adopter_whose_session_ends_before_it_has_heard_of_its_adoption_is_not_refused() {
    let mut scene = Scene::new();
    adopt(&mut scene);
    found(&mut scene, TIME / 2);
    scene.begin_session(8);
    let look = scene.calls().pop().unwrap();
    scene.reply(look, Ok(children(Vec::new(), 9)));
    let outcomes = scene.outcomes();
    assert!(
        matches!(outcomes[..], [Outcome::Failed { id: ID, .. }]),
        "{outcomes:?}"
    );
}

#[test]
fn an_adopter_that_is_refused_deletes_what_it_may_have_adopted_in_a_second_session() {
    let mut scene = Scene::new();
    adopt(&mut scene);
    found(&mut scene, TIME / 2);
    scene.begin_session(8);
    let adopts = found(&mut scene, TIME / 2);
    for call in adopts {
        scene.queue.unanswered(call.to);
    }
    scene.queue.connected(scene.now, session(8, scene.now), 0);
    let look = scene.calls().pop().unwrap();
    scene.reply(look, Err(Trouble::NoRight));
    let outcomes = scene.outcomes();
    assert!(
        matches!(outcomes[..], [Outcome::Failed { id: ID, .. }]),
        "{outcomes:?}"
    );
    let claim = scene.queue.claims.get(&ID).expect("it is looked for");
    assert!(claim.unwanted);
}

#[test]
fn what_keeps_a_lock_closed_is_deleted_after_its_time_although_the_session_has_ended() {
    let (mut scene, call) = issuing();
    drop(call);
    scene.begin_session(8);
    scene.calls();
    scene.now = scene.now.after(2 * TIME);
    scene.queue.tick(scene.now);
    let path = format!("/lock/k/{}", ticket());
    let is_deletion = |it: &Call| it.op == Op::Delete { path: path.clone() };
    let calls = scene.calls();
    let deletes = calls.into_iter().filter(is_deletion);
    let [delete] = <[_; 1]>::try_from(deletes.collect::<Vec<_>>()).unwrap();
    // Its answer is lost with that session, too.
    scene.queue.unanswered(delete.to);
    scene.begin_session(9);
    assert!(scene.calls().iter().any(is_deletion));
}

#[test]
fn an_adopter_that_was_refused_before_its_session_ends_is_refused() {
    let mut scene = Scene::new();
    adopt(&mut scene);
    let adopts = found(&mut scene, TIME / 2);
    scene.connect_again(adopts, 0);
    let look = scene.calls().pop().unwrap();
    scene.reply(look, Ok(children(vec![ticket()], 9)));
    scene.begin_session(8);
    let look = scene.calls().pop().unwrap();
    scene.reply(look, Ok(children(Vec::new(), 9)));
    assert!(is_no_ticket(&mut scene));
}

#[test]
fn a_ticket_that_others_have_adopted_is_gone() {
    let mut scene = Scene::new();
    adopt(&mut scene);
    let adopts = found(&mut scene, TIME / 2).remove(0);
    scene.reply(adopts, Err(Trouble::NoNode));
    let look = scene.calls().pop().unwrap();
    scene.reply(look, Ok(children(vec![others("x", 4)], 9)));
    assert!(is_no_ticket(&mut scene));
}

#[test]
fn an_adopter_that_has_gone_away_deletes_its_node() {
    let mut scene = Scene::new();
    adopt(&mut scene);
    let adopts = found(&mut scene, TIME / 2).remove(0);
    scene.queue.abandon(ID);
    scene.reply(adopts, Ok(Reply::Parts(Vec::new())));
    let delete = scene.calls().remove(0);
    assert!(matches!(delete.op, Op::Delete { .. }), "{delete:?}");
    scene.reply(delete, Ok(Reply::Done));
    assert_eq!(released(&mut scene), Some(false));
}

#[test]
fn a_node_that_may_be_adopted_is_looked_for_until_its_queue_can_be_read() {
    let mut scene = Scene::new();
    adopt(&mut scene);
    let calls = found(&mut scene, Duration::ZERO);
    let token = scene.claim(ID).token;
    scene.connect_again(calls, 0);
    let look = scene.calls().pop().unwrap();
    scene.reply(look, Err(Trouble::NoRight));
    assert!(matches!(
        scene.outcomes()[..],
        [Outcome::Failed { id: ID, .. }]
    ));
    scene.now = scene.now.after(TIMEOUT / 4);
    scene.queue.tick(scene.now);
    let mut calls = scene.calls();
    let beat = calls
        .iter()
        .position(|it| matches!(it.to, Recipient::Heartbeat));
    let beat = calls.remove(beat.unwrap());
    scene.reply(beat, Ok(Reply::Stat(Stat::default())));
    let look = scene.calls().pop().unwrap();
    let own = format!("x-{token}-0000000004");
    scene.reply(look, Ok(children(vec![own], 9)));
    let delete = scene.calls().pop().unwrap();
    assert!(matches!(delete.op, Op::Delete { .. }), "{delete:?}");
    scene.reply(delete, Ok(Reply::Done));
    assert!(scene.outcomes().is_empty());
    assert_eq!(scene.queue.claims.len(), 0);
}
