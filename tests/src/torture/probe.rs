//! Finds out whether a namespace's cable carries, loses and resets as it should.

use std::{
    io::{Error, ErrorKind, Read, Result},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use crate::namespace::Namespace;

/// Far longer than a handshake between two ends of a cable takes.
const HANDSHAKE: Duration = Duration::from_millis(300);
/// How long it may take until a connection is reset.
const RESET: Duration = Duration::from_secs(2);

/// Connects to `address` and waits: whether both went well, the connection and its reset.
pub fn reach(address: &str) -> bool {
    let address: SocketAddr = address.parse().expect("an address and a port");
    let Ok(mut stream) = TcpStream::connect_timeout(&address, HANDSHAKE) else {
        return false;
    };
    stream.set_read_timeout(Some(RESET)).expect("a socket");
    let ended = stream.read(&mut [0]);
    ended.is_err_and(|error| {
        let kinds = [ErrorKind::ConnectionReset, ErrorKind::ConnectionAborted];
        kinds.contains(&error.kind())
    })
}

/// Tries the cable out; `program reach ADDRESS` is [`reach`].
pub(super) fn check(namespace: &Namespace, program: &str) -> Result<()> {
    let listener = TcpListener::bind((namespace.host(), 0))?;
    let address = listener.local_addr()?.to_string();
    for (requests, replies) in [(false, false), (true, false), (false, true), (false, false)] {
        namespace.stop(requests, replies)?;
        let open = !requests && !replies;
        if reaches(namespace, program, &address)? != open {
            let what = if open { "carries" } else { "loses" };
            return Err(Error::other(format!("the cable {what} nothing")));
        }
    }
    namespace.unplug()?;
    namespace.pass()
}

fn reaches(namespace: &Namespace, program: &str, address: &str) -> Result<bool> {
    let [first, words @ ..] = namespace.enter();
    let mut command = Command::new(first);
    command.args(words).args([program, "reach", address]);
    let mut child = command.stdin(Stdio::null()).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        namespace.cut()?;
        sleep(HANDSHAKE / 20);
    }
}
