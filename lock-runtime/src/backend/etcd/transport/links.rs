//! The links to all members: one of them is asked, and keep-alives go to all.

use std::task::Context;

use super::dial::{Cluster, Dialer, voters};
use super::link::{Link, Report};
use crate::backend::etcd::address::Address;
use crate::backend::etcd::protocol::call::{Call, Reply, Sent};
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::backend::etcd::queue::{Order, Queue, Recipient};
use crate::backend::setup::Setup;
use crate::base::clock::Moment;
use crate::types::health::LastError;

#[derive(Debug)]
pub(crate) struct Links {
    members: Vec<Link>,
    /// The one that is asked, or was asked last.
    current: usize,
    is_up: bool,
    pub(crate) cluster: Option<Cluster>,
    /// Why the last connection broke or could not be opened.
    pub(crate) trouble: Option<Trouble>,
    /// Whether the queue has not heard of the last trouble.
    trouble_is_new: bool,
}

impl Links {
    pub(crate) fn new(address: &Address, setup: &Setup) -> Self {
        let now = setup.clock.now();
        let link = |(number, host)| Link::new(number, Dialer::new(address, host, setup), now);
        Self {
            members: address.hosts.iter().enumerate().map(link).collect(),
            current: 0,
            is_up: false,
            cluster: None,
            trouble: None,
            trouble_is_new: false,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Why a majority of the members will refuse every connection.
    pub(crate) fn refusal(&self) -> Option<&Trouble> {
        let refusals: Vec<_> = self.members.iter().filter_map(Link::refusal).collect();
        let is_majority = refusals.len() > self.members.len() / 2;
        refusals.first().copied().filter(|_| is_majority)
    }

    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        self.members.iter().filter_map(Link::next_wakeup).min()
    }

    /// Gives the queue everything that has happened; chooses another member where the
    /// current one is of no use any more.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, now: Moment, queue: &mut Queue) {
        let mut reports = Vec::new();
        for link in &mut self.members {
            link.poll(cx, now, &mut reports);
        }
        for report in reports {
            match report {
                Report::Up(cluster) => self.learn(cluster, queue),
                Report::Down(trouble) => {
                    self.trouble = Some(trouble);
                    self.trouble_is_new = true;
                }
                Report::Answer(sent, result) => match (&sent.to, result) {
                    (Recipient::Cluster, Ok(Reply::Members(list))) => {
                        let version = self.cluster.as_ref().and_then(|it| it.version);
                        let voters = Some(voters(&list.members));
                        self.learn(Cluster { voters, version }, queue);
                    }
                    (Recipient::Cluster, _) => {}
                    (_, result) => queue.answered(now, &sent, result),
                },
                Report::Seen(watch, seen) => queue.seen(now, watch, &seen),
            }
        }
        self.choose(now, queue);
    }

    fn learn(&mut self, cluster: Cluster, queue: &mut Queue) {
        queue.needs(cluster.quorum(self.members.len()));
        self.cluster = Some(cluster);
    }

    fn choose(&mut self, now: Moment, queue: &mut Queue) {
        if self.is_up && self.members[self.current].is_up() {
            return;
        }
        let count = self.members.len();
        let mut next = (1..=count).map(|step| (self.current + step) % count);
        if let Some(next) = next.find(|at| self.members[*at].is_up()) {
            self.current = next;
            self.is_up = true;
            queue.connected(now);
        } else if let Some(trouble) = &self.trouble
            && std::mem::take(&mut self.trouble_is_new)
        {
            self.is_up = false;
            queue.disconnected(now, trouble);
        }
    }

    /// Sends what the queue wants sent; `false` if there was nothing.
    pub(crate) fn send(&mut self, now: Moment, queue: &mut Queue) -> bool {
        let orders = queue.orders();
        let any = !orders.is_empty();
        for order in orders {
            match order {
                Order::Call(sent) => self.call(now, sent, queue),
                watch => self.members[self.current].watch(watch),
            }
        }
        any
    }

    fn call(&mut self, now: Moment, sent: Sent<Recipient>, queue: &mut Queue) {
        if !self.members[self.current].is_up() {
            let none = || Trouble::said("there is no connection");
            let trouble = self.trouble.clone().unwrap_or_else(none);
            queue.answered(now, &sent, Err(Trouble::NotNow(trouble.cause())));
        } else if let Call::KeepAlive(_) = sent.call {
            for link in &mut self.members {
                link.call(sent.clone());
            }
            self.ask_for_members(&sent);
        } else {
            self.members[self.current].call(sent);
        }
    }

    /// Looks who votes, together with a keep-alive: members may come and go while the
    /// connections stay.
    fn ask_for_members(&mut self, keep_alive: &Sent<Recipient>) {
        let may_ask = |it: &Cluster| it.voters.is_some();
        if self.cluster.as_ref().is_some_and(may_ask) {
            self.members[self.current].call(Sent {
                to: Recipient::Cluster,
                call: Call::members(),
                at: keep_alive.at,
                call_timeout: keep_alive.call_timeout,
            });
        }
    }

    /// The last error.
    pub(crate) fn last_error(&self) -> Option<LastError> {
        let errors = self.members.iter().filter_map(Link::last_error);
        errors.max_by_key(|it| it.at).cloned()
    }

    /// The ways to all members that are named.
    pub(crate) fn dialers(&self) -> Vec<Dialer> {
        self.members.iter().map(|it| it.dialer().clone()).collect()
    }

    /// Why the members that are named are too few to confirm a lease.
    pub(crate) fn too_few(&self) -> Option<String> {
        let cluster = self.cluster.as_ref()?;
        cluster.too_few(self.members.len())
    }
}
