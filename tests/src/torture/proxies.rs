//! The proxies of some processes, one to each server. What servers say of each other's addresses is rewritten, so that
//! their clients stay on these ways.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use super::trap::Trap;
use crate::Proxy;

/// What follows a port in what servers say.
const ENDS: &[u8] = b"\r\n @,";
/// All ports have so many digits.
const DIGITS: usize = 5;

/// One proxy to each server, in their order.
#[derive(Debug)]
pub(super) struct Proxies {
    to_servers: Vec<Proxy>,
    requests: Arc<Trap>,
    replies: Arc<Trap>,
}

/// A port, and that by which it is replaced.
type Ports = [(String, String)];

impl Proxies {
    /// Those to these servers.
    pub(super) fn start(targets: &[SocketAddr]) -> Self {
        let this = Self {
            to_servers: targets.iter().copied().map(Proxy::start).collect(),
            requests: Arc::default(),
            replies: Arc::default(),
        };
        let ports = targets.iter().zip(&this.to_servers);
        let ports: Vec<_> = ports
            .map(|(target, proxy)| (target.port().to_string(), proxy.addr().port().to_string()))
            .collect();
        let ports: Arc<Ports> = ports.into();
        for proxy in &this.to_servers {
            let (ports, trap) = (Arc::clone(&ports), Arc::clone(&this.replies));
            proxy.replies().inspect(move |bytes| {
                translate(bytes, &ports);
                trap.judge(bytes)
            });
            let trap = Arc::clone(&this.requests);
            proxy.requests().inspect(move |bytes| trap.judge(bytes));
        }
        this
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.to_servers.iter().map(Proxy::addr).collect()
    }

    pub(super) fn trap(&self, from_server: bool) -> &Trap {
        if from_server {
            &self.replies
        } else {
            &self.requests
        }
    }

    /// Delivers nothing of these to any server, or from it.
    pub(super) fn hold(&self, requests: bool, replies: bool) {
        for proxy in &self.to_servers {
            if requests {
                proxy.requests().hold();
            }
            if replies {
                proxy.replies().hold();
            }
        }
    }

    /// Lets nothing through to all servers but these.
    pub(super) fn lead_to(&self, servers: &[usize]) {
        for (number, proxy) in self.to_servers.iter().enumerate() {
            if !servers.contains(&number) {
                proxy.requests().hold();
                proxy.replies().hold();
            }
        }
    }

    /// Makes all that a server says late.
    pub(super) fn delay(&self, server: usize, delay: Duration) {
        self.to_servers[server].replies().delay(delay);
    }

    /// Carries so few bytes at once.
    pub(super) fn piecemeal(&self, most: Option<usize>) {
        for proxy in &self.to_servers {
            proxy.requests().piecemeal(most);
            proxy.replies().piecemeal(most);
        }
    }

    /// Lets everything through again.
    pub(super) fn pass(&self) {
        for proxy in &self.to_servers {
            proxy.requests().pass();
            proxy.replies().pass();
        }
    }

    pub(super) async fn cut(&self) {
        for proxy in &self.to_servers {
            proxy.cut().await;
        }
    }
}

/// Replaces the ports of servers by those of proxies where they stand alone; the length stays the same.
fn translate(bytes: &mut [u8], ports: &Ports) {
    let Some(last) = bytes.len().checked_sub(DIGITS + 1) else {
        return;
    };
    for at in 1..last {
        let (before, after) = (bytes[at - 1], bytes[at + DIGITS]);
        if !matches!(before, b':' | b' ' | b'\n') || !ENDS.contains(&after) {
            continue;
        }
        let port = &mut bytes[at..at + DIGITS];
        if let Some((_, proxy)) = ports.iter().find(|(own, _)| own.as_bytes() == port) {
            port.copy_from_slice(proxy.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_replaced_where_they_stand_alone() {
        let ports = [("12345".to_owned(), "23456".to_owned())];
        let said = b"*2\r\n$9\r\n127.0.0.1\r\n$5\r\n12345\r\n:12345\r\n+a 127.0.0.1:12345@9 1123450 x12345 12345\r\n";
        let mut bytes = said.to_vec();
        translate(&mut bytes, &ports);
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(
            text,
            "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n23456\r\n:23456\r\n+a 127.0.0.1:23456@9 1123450 x12345 23456\r\n"
        );
        translate(&mut [b'1'; 3], &ports);
    }
}
