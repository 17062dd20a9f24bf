//! One of a chain that goes on as a reader.

use super::{Call, Crowd, FENCE};
use crate::backend::Request;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

fn downgrade(crowd: &mut Crowd) -> Vec<Call> {
    let now = crowd.peer.now;
    let queue = &mut crowd.peer.queue;
    queue.submit(now, Request::Downgrade(LeaseId(1)));
    queue.calls().into_iter().map(|it| it.call).collect()
}

// Section: guarantees.md#from-writer-to-reader
#[test]
fn those_who_follow_a_reader_have_queued_again_before() {
    let mut crowd = Crowd::chained(3);
    match &downgrade(&mut crowd)[..] {
        [
            Call::Acquire {
                bearer: second,
                position: Some(2),
                ..
            },
            Call::Acquire {
                bearer: third,
                position: Some(3),
                ..
            },
            Call::Downgrade(first),
        ] => {
            assert_ne!(second.token, crowd.tokens[&2], "it was in the queue before");
            assert_ne!(third.token, crowd.tokens[&3]);
            assert_eq!(
                (first.token, first.terms.kind),
                (crowd.tokens[&1], Kind::Read)
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chain_that_comes_late_does_not_begin_with_a_reader() {
    let mut crowd = Crowd::waiting(2);
    crowd.hand_over(FENCE, [1]);
    assert_eq!(crowd.granted(), [(1, FENCE)]);
    assert!(matches!(downgrade(&mut crowd)[..], [Call::Downgrade(_)]));
    crowd.hand_over(FENCE, [1, 2]);
    let calls = crowd.peer.queue.calls();
    assert!(
        matches!(&calls[..], [sent] if matches!(&sent.call,
            Call::Acquire { bearer, position: Some(2), .. } if bearer.terms.id == LeaseId(2))),
        "{calls:?}"
    );
}
