//! Counts awaited operations, so that a sole waiter may drive the engine itself.

use super::{Operations, Releasing};

impl Operations {
    /// Somebody waits for one lock to be granted or released, and nobody for anything more.
    pub(in crate::driver) fn is_about_one(&self) -> bool {
        match self.acquiring.len() {
            0 => self.releasing.len() == 1 && !self.only_lets_go(),
            1 => self.releasing.is_empty() || self.only_lets_go(),
            _ => false,
        }
    }

    /// Nobody waits for a lock to be granted or released, and one is being released.
    pub(in crate::driver) fn is_unawaited(&self) -> bool {
        self.acquiring.is_empty() && self.only_lets_go()
    }

    /// One lock is being released, which nobody waits for.
    fn only_lets_go(&self) -> bool {
        let detached = |it: &Releasing| it.answer.is_none();
        self.releasing.len() == 1 && self.releasing.values().all(detached)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use crate::driver::op::Op;
    use crate::driver::operations::scene::Scene;
    use crate::types::terms::{LeaseId, Wait};

    /// Whether a caller may poll, and whether it is worth waiting for one answer.
    fn state(scene: &Scene) -> (bool, bool) {
        let operations = &scene.operations;
        (operations.is_unawaited(), operations.is_about_one())
    }

    #[test]
    fn a_release_that_nobody_waits_for_is_in_nobodys_way() {
        let mut scene = Scene::new(Wait::Forever);
        scene.hold(1);
        assert_eq!(state(&scene), (false, false));
        let id = LeaseId(1);
        scene.take(Op::Release { id, answer: None });
        assert_eq!(state(&scene), (true, false));
        let _second = scene.acquire(2);
        assert_eq!(state(&scene), (false, true));
        let _third = scene.acquire(3);
        assert_eq!(state(&scene), (false, false));
    }

    #[test]
    fn one_that_somebody_waits_for_is_in_the_way() {
        let mut scene = Scene::new(Wait::Forever);
        scene.hold(1);
        let (answer, _) = oneshot::channel();
        scene.take(Op::Release {
            id: LeaseId(1),
            answer: Some(answer),
        });
        assert_eq!(state(&scene), (false, true));
        let _second = scene.acquire(2);
        assert_eq!(state(&scene), (false, false));
    }
}
