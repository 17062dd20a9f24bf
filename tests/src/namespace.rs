//! A network namespace on the far end of a cable, which may lose packets either way, be unplugged, and reset what
//! goes through it.
//!
//! A way is closed by a wrong hardware address for the other end: what is sent there reaches nobody, as with a
//! dropped packet, and no packet filter is needed but `ip`.

use std::{
    io::{Error, Result},
    net::Ipv4Addr,
    process::{self, Command, Stdio},
};

use rustix::process::{Pid, test_kill_process};

/// What the names of namespaces and of cables begin with; the process and a number follow.
const NAME: &str = "lt-";

/// 198.18.0.0/15 is set aside for tests of networks (RFC 2544); each cable has two networks of four addresses of it.
const ADDRESSES: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// How many cables have room there, of how many for each process.
const CABLES: u32 = (1 << 17) / 8;
pub(crate) const OF_A_PROCESS: u32 = 4;

/// The hardware addresses of the ends, each alone with the other on its cable, and of nobody.
const HOST: &str = "02:00:00:00:00:01";
const GUEST: &str = "02:00:00:00:00:02";
const NOBODY: &str = "02:00:00:00:00:ff";

/// The name of the far end in its namespace.
const FAR_END: &str = "eth0";

/// The namespace and its cable; dropping it removes them.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    host: Ipv4Addr,
    guest: Ipv4Addr,
    /// Another address of the far end, which is reached whatever the cable loses.
    open: Ipv4Addr,
}

impl Namespace {
    /// Makes the namespace of this number of this process, in place of what had its name.
    pub(crate) fn make(number: u32) -> Result<Self> {
        let name = format!("{NAME}{}-{number}", process::id());
        let cable = (process::id() * OF_A_PROCESS + number) % CABLES;
        let network = u32::from(ADDRESSES) + 8 * cable;
        let near_open = Ipv4Addr::from(network + 5);
        let made = Self {
            name: name.clone(),
            host: (network + 1).into(),
            guest: (network + 2).into(),
            open: (network + 6).into(),
        };
        remove(&name);
        let Self {
            host, guest, open, ..
        } = made;
        run("ip", &format!("netns add {name}"))?;
        let far_end = format!("name {FAR_END} address {GUEST} netns {name}");
        run(
            "ip",
            &format!("link add {name} address {HOST} type veth peer {far_end}"),
        )?;
        for near in [host, near_open] {
            run("ip", &format!("address add {near}/30 dev {name}"))?;
        }
        run("ip", &format!("link set {name} up"))?;
        for far in [guest, open] {
            let inside = format!("-n {name} address add {far}/30 dev {FAR_END}");
            run("ip", &inside)?;
        }
        // By which a server there reaches itself.
        run("ip", &format!("-n {name} link set lo up"))?;
        made.pass()?;
        Ok(made)
    }

    /// Removes what processes left behind that were killed.
    pub(crate) fn sweep() {
        let Ok(list) = Command::new("ip").args(["netns", "list"]).output() else {
            return;
        };
        for line in String::from_utf8_lossy(&list.stdout).lines() {
            let name = line.split(' ').next().unwrap_or_default();
            let process = name.strip_prefix(NAME).and_then(|it| it.split_once('-'));
            let process = process.and_then(|(process, _)| process.parse().ok());
            if process.and_then(Pid::from_raw).is_some_and(is_dead) {
                remove(name);
            }
        }
    }

    /// The address of the near end, which the far one reaches.
    pub(crate) fn host(&self) -> Ipv4Addr {
        self.host
    }

    /// The address of the far end, which the near one reaches.
    pub(crate) fn guest(&self) -> Ipv4Addr {
        self.guest
    }

    /// The address at which the near end reaches the far one whatever the cable loses.
    pub(crate) fn open(&self) -> Ipv4Addr {
        self.open
    }

    /// The words that run a program in the namespace, before its own.
    pub(crate) fn enter(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.name]
    }

    /// Loses what goes to the near end, the requests; the replies; or both.
    pub(crate) fn stop(&self, requests: bool, replies: bool) -> Result<()> {
        self.set_host(if requests { NOBODY } else { HOST })?;
        self.set_guest(if replies { NOBODY } else { GUEST })
    }

    /// Takes the interface down: there is no way any more.
    pub(crate) fn unplug(&self) -> Result<()> {
        run("ip", &format!("-n {} link set {FAR_END} down", self.name))
    }

    /// Undoes whatever was done.
    pub(crate) fn pass(&self) -> Result<()> {
        run("ip", &format!("-n {} link set {FAR_END} up", self.name))?;
        self.stop(false, false)
    }

    /// Resets all connections; the near end hears of it if it can.
    pub(crate) fn cut(&self) -> Result<()> {
        let Self { name, host, .. } = self;
        let which = format!("state established dst {host}");
        run("ss", &format!("-N {name} --kill -H -t -n {which}"))
    }

    fn set_host(&self, address: &str) -> Result<()> {
        let Self { name, host, .. } = self;
        let neighbour = format!("{host} lladdr {address} nud permanent dev {FAR_END}");
        run("ip", &format!("-n {name} neighbour replace {neighbour}"))
    }

    fn set_guest(&self, address: &str) -> Result<()> {
        let Self { name, guest, .. } = self;
        let neighbour = format!("{guest} lladdr {address} nud permanent dev {name}");
        run("ip", &format!("neighbour replace {neighbour}"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Removes the cable at once; without it, the system may do so some time after the namespace.
fn remove(name: &str) {
    // An error says that there is none.
    let _ = run("ip", &format!("link delete {name}"));
    let _ = run("ip", &format!("netns delete {name}"));
}

fn is_dead(process: Pid) -> bool {
    test_kill_process(process) == Err(rustix::io::Errno::SRCH)
}

/// Runs a program; an error is what it said, or that it is missing.
fn run(program: &str, words: &str) -> Result<()> {
    let mut command = Command::new(program);
    let command = command.args(words.split(' ')).stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Err(Error::new(error.kind(), format!("{program}: {error}"))),
    };
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("it failed");
    Err(Error::other(format!("{program} {words}: {said}")))
}
