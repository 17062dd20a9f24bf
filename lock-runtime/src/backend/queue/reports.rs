//! What holders report of their locks, on its way to the queries that ask for it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;

use super::protocol::trouble::Trouble;
use crate::backend::token::Token;

/// What a holder says of its lock.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) token: Token,
    pub(crate) fence: u64,
    pub(crate) held: Duration,
    /// How many follow it in its chain.
    pub(crate) followers: usize,
    /// The names of those among them that hold other locks.
    pub(crate) nested: Vec<Box<str>>,
}

/// Reports as they arrive of the locks that are asked about, until the connection is gone.
#[derive(Debug)]
pub(crate) struct Reports {
    wanted: Arc<Wanted>,
    arriving: mpsc::UnboundedReceiver<Result<Report, Trouble>>,
}

/// The tokens of the holders who are to report, once they are known.
type Wanted = OnceLock<Box<[Token]>>;

impl Reports {
    /// Those of these holders are wanted; none were before.
    pub(crate) fn want(&self, tokens: &[Token]) {
        self.wanted.get_or_init(|| tokens.into());
    }

    pub(crate) async fn recv(&mut self) -> Option<Result<Report, Trouble>> {
        self.arriving.recv().await
    }
}

/// One who wants to know.
#[derive(Debug)]
struct Listener {
    wanted: Arc<Wanted>,
    sender: mpsc::UnboundedSender<Result<Report, Trouble>>,
}

impl Listener {
    fn wants(&self, token: Token) -> bool {
        self.wanted.get().is_some_and(|it| it.contains(&token))
    }
}

/// The queries that await reports.
#[derive(Debug, Default)]
pub(super) struct Listeners(Vec<Listener>);

impl Listeners {
    pub(super) fn listen(&mut self) -> Reports {
        let (sender, arriving) = mpsc::unbounded_channel();
        let wanted = Arc::<Wanted>::default();
        self.0.retain(|it| !it.sender.is_closed());
        self.0.push(Listener {
            wanted: Arc::clone(&wanted),
            sender,
        });
        Reports { wanted, arriving }
    }

    pub(super) fn reported(&self, report: &Report) {
        for listener in self.0.iter().filter(|it| it.wants(report.token)) {
            let _ = listener.sender.send(Ok(report.clone()));
        }
    }

    /// There is no connection over which more could arrive.
    pub(super) fn end(&mut self, trouble: &Trouble) {
        for listener in self.0.drain(..) {
            let _ = listener.sender.send(Err(trouble.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::token::Tokens;

    #[tokio::test]
    async fn whoever_asks_hears_of_no_other_locks() {
        let mut tokens = Tokens::default();
        let [mine, other] = [(); 2].map(|()| tokens.next().expect("a token"));
        let report = |token| Report {
            token,
            fence: 1,
            held: Duration::ZERO,
            followers: 0,
            nested: Vec::new(),
        };
        let mut listeners = Listeners::default();
        let mut reports = listeners.listen();
        listeners.reported(&report(mine));
        reports.want(&[mine]);
        listeners.reported(&report(other));
        listeners.reported(&report(mine));
        assert_eq!(reports.arriving.len(), 1);
        let heard = reports.recv().await.expect("a report").expect("no trouble");
        assert_eq!(heard.token, mine);
    }
}
