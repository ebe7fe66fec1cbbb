//! Gives the datagrams to many relayed addresses to few sockets.
//!
//! With a socket for each relay, an allocation costs a socket, a bind and a descriptor, and receiving costs a system call
//! for each of them. Here an `sk_lookup` program looks up which socket gets what arrives at a port, in a table that this
//! process writes.

use std::fs::File;
use std::mem::offset_of;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use aya::maps::{HashMap, Map, MapError, SockMap};
use aya::programs::{ProgramError, SkLookup};
use aya::{Ebpf, EbpfError, EbpfLoader};
use nix::errno::Errno;

use crate::error::{SteerError, os_error};
use crate::layout::{Layout, layout};
use crate::loader::last_line;
use crate::sys::mapping::Mapping;
use crate::{btf, packed};

const PROGRAM: &str = "steer";
const PORTS: usize = 1 << 16;
/// The lower half of [`Port::owner`] is the number of the socket plus one.
const HELD: u32 = 1 << 16;
const PASSED: u32 = 1 << 17;
const NAMESPACE: &str = "/proc/thread-self/ns/net";

/// A port of one address.
#[repr(C)]
struct Port {
    owner: u32,
    drain: u32,
    count: u32,
    pad: u32,
}

/// The receive queue of a socket; the first one is not used.
#[repr(C)]
struct Queue {
    drain: u32,
    pad: [u32; 15],
    over: u64,
    pad2: [u64; 7],
}

/// The structs of the program.
const LAYOUTS: [Layout; 2] =
    [layout!("port", Port, owner, drain, count, pad), layout!("queue", Queue, drain, pad, over, pad2)];

const PORT_WORDS: usize = size_of::<Port>() / size_of::<u32>();
const QUEUE_BYTES: usize = size_of::<Queue>();

/// A port of a relay address: the place of the address in the list that [`Steering::load`] got, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeredPort {
    /// Place of the address.
    pub place: usize,
    /// Port.
    pub port: u16,
}

/// The attached program and its tables. Dropping it detaches the program: nothing is pinned.
///
/// A port is free, held, or steered to a socket. Datagrams to a free port go on as without the program, to a socket that
/// is bound to it or to none; those to a held port, which is only taken yet, are dropped.
pub struct Steering {
    _program: Ebpf,
    ports: Mapping,
    queues: Mapping,
    places: usize,
}

impl Steering {
    /// Loads the program for relays with addresses `places`, all ports free, and attaches it to the network namespace of
    /// this thread. `sockets` are bound UDP sockets, whatever they are bound to.
    ///
    /// # Errors
    /// The object is not of this build, or the kernel denies or rejects a map, the program or the attachment.
    pub fn load(places: &[IpAddr], sockets: &[BorrowedFd<'_>]) -> Result<Self, SteerError> {
        let object = packed::unpack(packed::STEER);
        btf::check_structs(&object, &LAYOUTS).map_err(|error| SteerError::Layout(error.to_string()))?;
        let entries = |count: usize| u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        let mut loader = EbpfLoader::new();
        loader.btf(None).map_max_entries("places", entries(places.len()));
        loader.map_max_entries("ports", entries(places.len() * PORTS));
        loader.map_max_entries("queues", entries(sockets.len() + 1));
        loader.map_max_entries("sockets", entries(sockets.len()));
        let mut program = loader.load(&object).map_err(|error| load_error("maps", &error))?;
        steer_of(&mut program)?.load().map_err(|error| program_error(&error))?;
        // The program holds its maps from here on.
        let ports = mapping(&mut program, "ports", places.len().max(1) * PORTS * size_of::<Port>())?;
        let queues = mapping(&mut program, "queues", (sockets.len() + 1) * QUEUE_BYTES)?;
        fill(&mut program, places, sockets).map_err(|error| SteerError::load("maps", os_error(&error), &error))?;
        let namespace =
            File::open(NAMESPACE).map_err(|error| SteerError::load("link", error.raw_os_error(), &error))?;
        steer_of(&mut program)?
            .attach(namespace)
            .map_err(|error| SteerError::load("link", os_error(&error), &error))?;
        Ok(Self { _program: program, ports, queues, places: places.len() })
    }

    /// Takes a free port, which is held from then on. Returns `false` if it is not free.
    #[must_use]
    pub fn take(&self, port: SteeredPort) -> bool {
        self.owner(port).compare_exchange(0, HELD, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Has datagrams to a port that was taken go on as without the program. It stays taken.
    pub fn pass(&self, port: SteeredPort) {
        self.owner(port).store(PASSED, Ordering::Release);
    }

    /// Frees a port that was taken.
    pub fn give(&self, port: SteeredPort) {
        self.owner(port).store(0, Ordering::Release);
    }

    /// Steers a port that was taken to a socket.
    pub fn steer(&self, port: SteeredPort, socket: u16) {
        self.owner(port).store(u32::from(socket) + 1, Ordering::Release);
    }

    /// Says that a socket was found empty: every port may have its whole budget in the receive buffer again.
    pub fn note_drained(&self, socket: u16) {
        let at = queue(socket, offset_of!(Queue, drain));
        self.queues.words()[at / size_of::<u32>()].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the datagrams that were dropped since the last call because a port had 512 in the receive buffer of
    /// `socket`. A device that merges datagrams (GRO) has the program run twice for one: it may count twice.
    #[must_use]
    pub fn take_over(&self, socket: u16) -> u64 {
        let at = queue(socket, offset_of!(Queue, over));
        self.queues.double_words()[at / size_of::<u64>()].swap(0, Ordering::Relaxed)
    }

    fn owner(&self, SteeredPort { place, port }: SteeredPort) -> &AtomicU32 {
        assert!(place < self.places, "the address has a place");
        &self.ports.words()[(place * PORTS + usize::from(port)) * PORT_WORDS]
    }
}

/// The place of a field of a socket's queue, in bytes.
fn queue(socket: u16, field: usize) -> usize {
    (usize::from(socket) + 1) * QUEUE_BYTES + field
}

impl std::fmt::Debug for Steering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Steering").field("places", &self.places).finish_non_exhaustive()
    }
}

fn steer_of(program: &mut Ebpf) -> Result<&mut SkLookup, SteerError> {
    let steer = program.program_mut(PROGRAM).ok_or_else(|| SteerError::Layout("no program".to_owned()))?;
    steer.try_into().map_err(|error: ProgramError| program_error(&error))
}

/// Fills the tables that only this process needs to change, and only now.
fn fill(program: &mut Ebpf, places: &[IpAddr], sockets: &[BorrowedFd<'_>]) -> Result<(), MapError> {
    let absent = |name: &str| MapError::InvalidName { name: name.to_owned() };
    let map = program.take_map("places").ok_or_else(|| absent("places"))?;
    let mut by_ip = HashMap::<_, [u8; 16], u32>::try_from(map)?;
    for (place, ip) in (0..).zip(places) {
        by_ip.insert(key(*ip), place, 0)?;
    }
    let map = program.take_map("sockets").ok_or_else(|| absent("sockets"))?;
    let mut by_number = SockMap::try_from(map)?;
    for (number, socket) in (0..).zip(sockets) {
        by_number.set(number, &socket.as_raw_fd(), 0)?;
    }
    Ok(())
}

/// An address as the program reads it: IPv4 in the last four bytes.
fn key(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => {
            let mut key = [0; 16];
            key[12..].copy_from_slice(&v4.octets());
            key
        }
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn mapping(program: &mut Ebpf, name: &'static str, len: usize) -> Result<Mapping, SteerError> {
    let failed = |os: Option<Errno>| SteerError::Load {
        step: "maps",
        os: os.map(|errno| errno as i32),
        detail: format!("{name} cannot be mapped"),
    };
    let Some(Map::Array(data)) = program.take_map(name) else { return Err(failed(None)) };
    Mapping::new(data.fd().as_fd(), len).map_err(|errno| failed(Some(errno)))
}

fn load_error(step: &'static str, error: &EbpfError) -> SteerError {
    SteerError::load(step, os_error(error), error)
}

fn program_error(error: &ProgramError) -> SteerError {
    let ProgramError::LoadError { io_error, verifier_log } = error else {
        return SteerError::load("program", os_error(error), error);
    };
    let detail = last_line(&verifier_log.to_string());
    SteerError::Load { step: "program", os: io_error.raw_os_error(), detail }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use testkit::{Requirement, require};

    use super::*;

    const PORT: u16 = 45_678;
    const BUDGET: usize = 512;

    #[test]
    fn the_committed_object_has_the_layout_of_this_crate() {
        btf::check_structs(&packed::unpack(packed::STEER), &LAYOUTS).unwrap();
    }

    /// A socket and the program for one address.
    fn steering(ip: &str) -> Result<(Steering, UdpSocket), String> {
        let ip: IpAddr = ip.parse().unwrap();
        let loopback = if ip.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
        let socket = UdpSocket::bind(loopback).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        match Steering::load(&[ip], &[socket.as_fd()]) {
            Err(error) if error.os_error() == Some(1) => Err(error.to_string()),
            loaded => Ok((loaded.unwrap_or_else(|error| panic!("{error}")), socket)),
        }
    }

    fn sender(ip: &str) -> UdpSocket {
        UdpSocket::bind(if ip.contains(':') { "[::1]:0" } else { "127.0.0.1:0" }).unwrap()
    }

    #[test]
    fn a_port_is_free_held_or_steered() {
        for (ip, port) in [("127.0.0.77", PORT), ("::1", PORT + 1)] {
            let Some((steering, socket)) = require(Requirement::Privilege, steering(ip)) else { return };
            let (place, sender) = (SteeredPort { place: 0, port }, sender(ip));
            let to = (ip.parse::<IpAddr>().unwrap(), port);
            // Free: another process's socket gets it.
            let other = UdpSocket::bind(to).unwrap();
            other.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            sender.send_to(b"free", to).unwrap();
            assert_eq!(other.recv(&mut [0; 9]).unwrap(), 4, "{ip}");
            assert!(steering.take(place));
            steering.pass(place);
            sender.send_to(b"pass", to).unwrap();
            assert_eq!(other.recv(&mut [0; 9]).unwrap(), 4, "{ip}");
            drop(other);
            steering.give(place);

            assert!(steering.take(place) && !steering.take(place));
            sender.send_to(b"held", to).unwrap();
            steering.steer(place, 0);
            sender.send_to(b"steer", to).unwrap();
            // What was sent while it was held did not come.
            assert_eq!(socket.recv(&mut [0; 9]).unwrap(), 5, "{ip}");
            steering.give(place);
            assert!(steering.take(place));
        }
    }

    /// One port cannot fill the buffer of all: it gets its budget, and again once the socket is drained.
    #[test]
    fn a_port_has_a_budget_until_the_socket_is_drained() {
        let ip = "127.0.0.78";
        let Some((steering, socket)) = require(Requirement::Privilege, steering(ip)) else { return };
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::RcvBufForce, &(8 << 20)).unwrap();
        let ports = [PORT, PORT + 1].map(|port| SteeredPort { place: 0, port });
        for port in ports {
            assert!(steering.take(port));
            steering.steer(port, 0);
        }
        let sender = sender(ip);
        let send = |port: SteeredPort| {
            sender.send_to(b"x", (ip.parse::<IpAddr>().unwrap(), port.port)).unwrap();
        };
        (0..BUDGET + 9).for_each(|_| send(ports[0]));
        send(ports[1]);
        assert_eq!(steering.take_over(0), 9);
        (0..=BUDGET).for_each(|_| assert_eq!(socket.recv(&mut [0; 2]).unwrap(), 1));
        send(ports[0]);
        assert_eq!(steering.take_over(0), 1, "it has not said that its socket is empty");
        steering.note_drained(0);
        send(ports[0]);
        assert_eq!((socket.recv(&mut [0; 2]).unwrap(), steering.take_over(0)), (1, 0));
    }
}
