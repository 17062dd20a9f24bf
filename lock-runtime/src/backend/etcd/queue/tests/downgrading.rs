//! Writers that go on as readers.

use super::*;

#[test]
fn a_writer_that_has_waited_stays_a_reader_whatever_it_has_announced() {
    for announced in [false, true] {
        let mut story = Story::with_session(1);
        story.acquire(1, |_| {});
        story.enter(Ok(entered(4, vec![kv(Kind::Exclusive, 2)])));
        story.waits(1);
        let watch = story.watch(2);
        story.queue.seen(story.now, watch.id, &Seen::Deleted(8));
        story.granted(1);
        // The answer is lost, and the member carries out the call before the downgrade.
        let announcement = announced.then(|| {
            story.pass(SHORT);
            let announce = story.claim_call(Step::Announce);
            story.answer(&announce, Err(unknown()));
            KeyValue {
                create_revision: 4,
                ..written(&announce.call, 9)
            }
        });
        story.submit(Request::Downgrade(LeaseId(1)));
        let mut downgrade = story.claim_call(Step::Downgrade);
        if let Some(own) = announcement {
            story.answer(&downgrade, Ok(txn(9, false, vec![read(9, vec![own])])));
            downgrade = story.claim_call(Step::Downgrade);
            let text = format!("{:?}", downgrade.call);
            assert!(text.contains("ModRevision(9)"), "{text}");
        }
        assert!(entry::is_downgraded(&written(&downgrade.call, 10).value));
        story.answer(&downgrade, Ok(txn(10, true, vec![])));
        let outcome = story.outcome();
        assert!(
            matches!(outcome, Some(Outcome::Downgraded { result: Ok(()), .. })),
            "{outcome:?}"
        );
        story.pass(SHORT);
        story.pass(Duration::from_millis(100));
        assert!(!story.sends(Step::Announce) && story.outcome().is_none());
    }
}
