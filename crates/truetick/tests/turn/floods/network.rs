//! Two network namespaces joined by two links: the server's, and one that answers to ten thousand addresses.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::sched::{CloneFlags, setns};

/// The server's address.
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 98, 0, 1));
/// The address of honest clients and of their peers.
pub(crate) const HONEST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 97, 0, 2));
/// How many sources a flood comes from.
pub(crate) const SOURCES: u32 = 10_000;

/// The link of floods, by its name in both namespaces.
pub(crate) const LINK: &str = "flood0";
/// The hardware address of the server's end of it.
pub(crate) const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// The link of honest clients. What the other one counts belongs to the flood.
const HONEST_LINK: &str = "honest0";
/// The attackers' end of their link, and the server's end of the honest clients'.
const ATTACKERS: &str = "10.98.0.2";
const HONEST_GATEWAY: &str = "10.97.0.1";

/// One flood at a time: the machine is part of what is tried.
static ALONE: Mutex<()> = Mutex::new(());

/// The source of the flood's `number`th datagram.
pub(crate) fn source(number: u32) -> Ipv4Addr {
    let index = number % SOURCES;
    Ipv4Addr::new(10, 99, (index / 250) as u8, (index % 250 + 1) as u8)
}

/// Which namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Server,
    Outside,
}

/// The namespaces; gone when dropped.
pub(crate) struct Network {
    server: String,
    outside: String,
    _alone: MutexGuard<'static, ()>,
}

impl Network {
    /// Makes both; an error is the reason for a skip.
    pub(crate) fn make() -> Result<Self, String> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let id = std::process::id();
        let network = Self { server: format!("ttfs{id}"), outside: format!("ttfo{id}"), _alone: alone };
        let (server, outside) = (&network.server, &network.outside);
        let hardware = HARDWARE.map(|byte| format!("{byte:02x}")).join(":");
        let lines = [
            format!("netns add {server}"),
            format!("netns add {outside}"),
            format!("-n {server} link add {LINK} address {hardware} type veth peer name {LINK} netns {outside}"),
            format!("-n {server} addr add {SERVER}/24 dev {LINK}"),
            format!("-n {outside} addr add {ATTACKERS}/24 dev {LINK}"),
            format!("-n {server} link add {HONEST_LINK} type veth peer name {HONEST_LINK} netns {outside}"),
            format!("-n {server} addr add {HONEST_GATEWAY}/24 dev {HONEST_LINK}"),
            format!("-n {outside} addr add {HONEST}/24 dev {HONEST_LINK}"),
            // No IPv6, whose router solicitations the link would count.
            format!("-n {server} link set {LINK} addrgenmode none"),
            format!("-n {outside} link set {LINK} addrgenmode none"),
            format!("-n {server} link set lo up"),
            format!("-n {outside} link set lo up"),
            format!("-n {server} link set {LINK} up"),
            format!("-n {outside} link set {LINK} up"),
            format!("-n {server} link set {HONEST_LINK} up"),
            format!("-n {outside} link set {HONEST_LINK} up"),
            format!("-n {outside} rule add from {HONEST} lookup 100"),
            format!("-n {outside} route add {SERVER} via {HONEST_GATEWAY} dev {HONEST_LINK} table 100"),
            // Every address of the range is local: sockets may be bound to it, and answers come in.
            format!("-n {outside} route add local 10.99.0.0/16 dev lo"),
            format!("-n {server} route add 10.99.0.0/16 via {ATTACKERS}"),
        ];
        for line in lines {
            ip(&line)?;
        }
        Ok(network)
    }

    /// Runs `work` on a thread that lives on one side; processes that it starts live there too.
    pub(crate) fn on<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> T {
        let name = match side {
            Side::Server => &self.server,
            Side::Outside => &self.outside,
        };
        let namespace = File::open(format!("/run/netns/{name}")).unwrap();
        let enter_and_work = || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(enter_and_work).join().unwrap())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = ip(&format!("netns del {}", self.server));
        let _ = ip(&format!("netns del {}", self.outside));
    }
}

fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split(' ')).output();
    let output = output.map_err(|error| format!("no program ip (Debian package iproute2): {error}"))?;
    let message = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("ip {line}: {}", message.trim())) }
}

/// Packets and bytes that a link of the calling thread's namespace has received (proc_pid_net(5), `dev`).
pub(crate) fn received_by(link: &str) -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(link)?.strip_prefix(':')).unwrap();
    let mut numbers = line.split_whitespace().map(|number| number.parse().unwrap());
    let bytes = numbers.next().unwrap();
    [numbers.next().unwrap(), bytes]
}
