//! Numbers that mean the same get the same digits: only the order of positions, fences and tokens matters, so that a
//! state does not tell how many there were before.

use super::Scenario;
use super::client::{Stage, Task};
use super::server::{Position, Reply, Request, Token};
use super::world::{Link, World};

impl World {
    /// Drops what nothing depends on any more, and gives the rest the smallest numbers that keep its order.
    pub fn canonicalize(&mut self, scenario: &Scenario) {
        self.forget_ended_tasks();
        self.forget_unused_times(scenario);
        self.forget_dead_tokens();
        self.forget_idle_links(scenario);
        self.renumber_positions(scenario);
        self.renumber_fences(scenario);
        self.renumber_tokens();
    }

    fn forget_ended_tasks(&mut self) {
        for (number, task) in (0u8..).zip(&mut self.tasks) {
            match task.stage {
                Stage::Done => {
                    *task = Task {
                        stage: Stage::Done,
                        ..Task::new(number)
                    }
                }
                // Neither acquires again.
                Stage::Leaving { .. } => (task.position, task.cut) = (None, false),
                Stage::Held { .. } => task.position = None,
                _ => {}
            }
        }
    }

    /// A connection is seen again before it joins a queue.
    fn forget_unused_times(&mut self, scenario: &Scenario) {
        for lock in &mut self.server.locks {
            for (client, seen) in lock.seen.iter_mut().enumerate() {
                if lock
                    .queue
                    .iter()
                    .all(|it| scenario.client(it.token.task) != client)
                {
                    *seen = None;
                }
            }
        }
    }

    /// What is on its way about a token that nobody has any more, and changes nothing.
    fn forget_dead_tokens(&mut self) {
        let mut alive = Vec::with_capacity(8);
        for lock in &self.server.locks {
            alive.extend(lock.owner.map(|it| it.token));
            alive.extend(lock.queue.iter().map(|it| it.token));
        }
        let sent = self
            .links
            .iter()
            .flat_map(|it| it.requests.iter().chain(&it.late));
        alive.extend(
            sent.filter(|it| {
                matches!(
                    it,
                    Request::Acquire(..) | Request::Try(..) | Request::Adopt(..)
                )
            })
            .map(|it| it.token()),
        );
        let tasks = &self.tasks;
        let is_known = |token: Token| tasks.iter().any(|it| it.token == token && it.is_known());
        for link in &mut self.links {
            link.replies.retain(|it| is_known(it.token()));
            link.pushes.retain(|it| {
                let mut tokens = it.followers.iter().map(|(token, _)| *token);
                alive.contains(&it.token) || is_known(it.token) || tokens.any(is_known)
            });
            link.late
                .retain(|it| alive.contains(&it.token()) || matches!(it, Request::Ask(_)));
        }
    }

    /// Nothing depends on the connection of a client that wants no lock, and that the server has heard all of.
    fn forget_idle_links(&mut self, scenario: &Scenario) {
        for (client, link) in self.links.iter_mut().enumerate() {
            let is_ours = |token: Token| scenario.client(token.task) == client;
            let mut tasks = (0u8..)
                .zip(&self.tasks)
                .filter(|(number, _)| scenario.client(*number) == client);
            let idle = tasks.all(|(_, it)| matches!(it.stage, Stage::New | Stage::Done));
            let waits = self
                .server
                .locks
                .iter()
                .flat_map(|it| &it.queue)
                .any(|it| is_ours(it.token));
            if idle
                && !waits
                && link.late.is_empty()
                && link.requests.is_empty()
                && link.pushes.is_empty()
            {
                *link = Link::default();
                self.server.listens[client] = true;
            }
        }
    }

    fn renumber_positions(&mut self, scenario: &Scenario) {
        let mut all = Vec::with_capacity(8);
        let mut ticks = Vec::with_capacity(8);
        for lock in 0..scenario.locks() {
            all.clear();
            self.each_position(scenario, lock, |it| all.push(*it));
            all.sort_unstable();
            all.dedup();
            ticks.clear();
            ticks.extend(all.iter().map(|it| it.tick));
            ticks.dedup();
            self.each_position(scenario, lock, |it| {
                *it = Position {
                    tick: rank(&ticks, &it.tick),
                    rank: rank(&all, it),
                }
            });
        }
    }

    /// The counter is ahead of all numbers of each lock.
    fn renumber_fences(&mut self, scenario: &Scenario) {
        let mut all = Vec::with_capacity(8);
        let mut last = 0;
        let counter = self.server.fence;
        for lock in 0..scenario.locks() {
            all.clear();
            self.each_fence(scenario, lock, |it| all.push(*it));
            all.extend([0, counter]);
            all.sort_unstable();
            all.dedup();
            self.each_fence(scenario, lock, |it| *it = rank(&all, it));
            last = last.max(rank(&all, &counter));
        }
        self.server.fence = last;
    }

    fn renumber_tokens(&mut self) {
        let mut all = Vec::with_capacity(8);
        self.each_token(|it| all.push(*it));
        all.sort_unstable();
        all.dedup();
        if all.iter().all(|it| it.attempt == 0) {
            return;
        }
        self.each_token(|it| {
            let first = all.partition_point(|other| other.task < it.task);
            it.attempt = rank(&all[first..], it);
        });
    }

    fn each_position(
        &mut self,
        scenario: &Scenario,
        key: usize,
        mut see: impl FnMut(&mut Position),
    ) {
        let is_here = |token: Token| scenario.lock(token.task) == key;
        let lock = &mut self.server.locks[key];
        see(&mut lock.clock);
        lock.queue.iter_mut().for_each(|it| see(&mut it.position));
        for (number, task) in (0u8..).zip(&mut self.tasks) {
            if scenario.lock(number) == key {
                task.position.iter_mut().for_each(&mut see);
            }
        }
        for link in &mut self.links {
            for request in link.requests.iter_mut().chain(&mut link.late) {
                match request {
                    Request::Acquire(token, Some(position)) if is_here(*token) => see(position),
                    _ => {}
                }
            }
            for reply in &mut link.replies {
                match reply {
                    Reply::Waiting(token, Some(position)) if is_here(*token) => see(position),
                    _ => {}
                }
            }
        }
    }

    fn each_fence(&mut self, scenario: &Scenario, key: usize, mut see: impl FnMut(&mut u8)) {
        let is_here = |token: Token| scenario.lock(token.task) == key;
        see(&mut self.begun[key]);
        let tasks = (0u8..)
            .zip(&mut self.tasks)
            .filter(|(number, _)| scenario.lock(*number) == key);
        for (_, task) in tasks {
            match &mut task.stage {
                Stage::Waiting {
                    fence: Some(fence), ..
                }
                | Stage::Following { fence, .. }
                | Stage::Confirming { fence, .. }
                | Stage::Held { fence, .. } => see(fence),
                _ => {}
            }
        }
        for link in &mut self.links {
            for reply in &mut link.replies {
                match reply {
                    Reply::Granted(token, fence) if is_here(*token) => see(fence),
                    _ => {}
                }
            }
            for push in link.pushes.iter_mut().filter(|it| is_here(it.token)) {
                see(&mut push.fence);
                push.followers.iter_mut().for_each(|(_, fence)| see(fence));
            }
        }
    }

    fn each_token(&mut self, mut see: impl FnMut(&mut Token)) {
        for lock in &mut self.server.locks {
            lock.owner.iter_mut().for_each(|it| see(&mut it.token));
            lock.queue.iter_mut().for_each(|it| see(&mut it.token));
        }
        for (number, task) in (0u8..).zip(&mut self.tasks) {
            let mut own = Token {
                task: number,
                attempt: task.attempt,
            };
            see(&mut own);
            task.attempt = own.attempt;
            see(&mut task.token);
            if let Stage::Following { chain, .. } = &mut task.stage {
                see(chain);
            }
        }
        for link in &mut self.links {
            for request in link.requests.iter_mut().chain(&mut link.late) {
                see(request.token_mut());
            }
            link.replies.iter_mut().for_each(|it| see(it.token_mut()));
            for push in &mut link.pushes {
                see(&mut push.token);
                push.followers.iter_mut().for_each(|(token, _)| see(token));
            }
        }
    }
}

/// Which of the sorted values this is.
fn rank<T: Ord>(all: &[T], value: &T) -> u8 {
    u8::try_from(all.partition_point(|it| it < value)).unwrap_or(u8::MAX)
}
