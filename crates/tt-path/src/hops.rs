//! Next hops of packets that the program relays, by rtnetlink.
//!
//! The program has no FIB lookup: `bpf_fib_lookup` answers only on a host that forwards, and costs more than the rest
//! of the program. The process resolves next hops instead, and keeps the table `hops` true.
//!
//! # The kernel decides
//!
//! For each pair of source and destination the kernel itself is asked (`RTM_GETROUTE`, as `ip route get DST from SRC`),
//! not a copy of its tables: rules, prefixes, metrics, redirects and learned path MTUs are then exact. A second
//! question (`RTM_F_FIB_MATCH`) asks for the route that matched, which shows several next hops and nexthop objects. Of
//! the tables themselves only two facts are kept: whether the rules are the standard ones, and how many routes have the
//! same prefix and metric, because the kernel alternates between those of IPv6 (router advertisements of two routers).
//!
//! Notifications never carry facts. They say what to ask again, so that neither their order nor their loss (`ENOBUFS`:
//! everything is asked again) matters. The kernel does not notify some changes: routes of IPv4 that go with an
//! interface or (older kernels) with an address, expired routes, redirects. For these, addresses and interfaces are
//! followed too, and every pair is asked again each 15 s.
//!
//! # Uncertain means sockets
//!
//! Whatever is not certain is refused with a [`Refusal`]. A hop is invalid from the moment at which its neighbour
//! fails, its link goes down, or a route of one of its pairs is in doubt, and packets go to the sockets meanwhile.
//!
//! # Neighbours
//!
//! Packets of the program do not confirm a neighbour. Every 15 s the kernel gets `NTF_USE` for each hop in use, and so
//! asks a stale neighbour whether it still has its address. That needs CAP_NET_ADMIN in the thread that calls
//! [`NextHops::process`]. Without it, a hop is invalid while its neighbour is stale: then the first packet goes through
//! a socket, and the kernel has the neighbour confirmed.

mod facts;
mod judge;
mod kernel;
mod message;
mod pairs;
mod refusal;
mod slots;
mod socket;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_route::link::LinkFlags;
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::RouteMessage;
use tt_model::{IpFamily, Nanos};

use crate::PathError;
use crate::writer::{NextHop, Writer};
use facts::{Confirmation, Neighbour, Route, family_of};
use judge::Target;
use kernel::Kernel;
pub(crate) use message::{
    IFLA_LINK, IFLA_LINK_NETNSID, IFLA_LINKINFO, IFLA_MTU, IFLA_PARENT_DEV_BUS_NAME, IFLA_PARENT_DEV_NAME, IFLA_XDP,
    LinkMessage, LinkQuestion, Message, attribute, text, word,
};
pub use pairs::AddressPair;
use pairs::{Certainty, Change, Pairs};
pub use refusal::Refusal;
use slots::Slots;
use socket::{Arrival, Notifications};
pub(crate) use socket::{Failure, Questions};

/// Time between two confirmations of a neighbour in use.
const KEEP_ALIVE: Nanos = Nanos::from_millis(15_000);
/// Pairs that one call asks about: two questions of about 12 us each.
const PAIRS_PER_CALL: usize = 1_024;
/// More changes than this are taken as a change of everything.
const CHANGES_MAX: usize = 64;
/// Interfaces whose flags are remembered.
const LINKS_MAX: usize = 4_096;

/// The slot of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index in the table `hops`, for [`crate::PathSpec::hop`].
    pub slot: u16,
    /// Where its packets leave, or why they go to the sockets for now.
    pub state: Result<NextHop, Refusal>,
}

/// A change that the caller should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopEvent {
    /// A slot in use became valid or invalid, or has another neighbour address. The table is already changed.
    HopChanged(Hop),
    /// Packets of the pair no longer leave by the hop of its slot. The slot stays invalid until every user of the pair
    /// has called [`NextHops::release`]: close its paths, release it, and [`NextHops::acquire`] it again.
    RouteChanged {
        /// The pair.
        pair: AddressPair,
        /// The slot of its open paths.
        slot: u16,
        /// Why there is no new hop; `None` if there is one.
        refusal: Option<Refusal>,
    },
}

/// The next hops of all open paths, in the 256 slots of the table `hops`.
///
/// It belongs to one thread, and no call waits. The thread polls the descriptor ([`AsFd`]) for reading until
/// [`NextHops::deadline`], and then calls [`NextHops::process`]. `now` is any monotonic clock, the same in every call.
/// The network namespace is that of the thread that called [`NextHops::open`].
///
/// A refused pair may be tried again at any time: when its path is extended, for example.
///
/// ```no_run
/// use tt_model::Nanos;
/// use tt_path::{AddressPair, Capacity, HopEvent, NextHops, Paths};
///
/// # fn main() -> Result<(), tt_path::PathError> {
/// let paths = Paths::load(Capacity { paths: 1_000, meters: 100 })?;
/// let mut hops = NextHops::open(paths.writer()?)?;
/// hops.attach(2);
/// let (source, destination) = ([192, 0, 2, 1].into(), [198, 51, 100, 7].into());
/// match hops.acquire(AddressPair { source, destination }, Nanos(0)) {
///     Ok(hop) => println!("paths to {destination} have the hop {}", hop.slot),
///     Err(refusal) => println!("{destination} is reached by sockets: {}", refusal.name()),
/// }
/// let mut events = Vec::new();
/// hops.process(Nanos(0), &mut events)?;
/// for event in events {
///     if let HopEvent::RouteChanged { pair, .. } = event {
///         println!("close the paths to {}", pair.destination);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct NextHops {
    writer: Writer,
    kernel: Kernel,
    notifications: Notifications,
    slots: Slots,
    pairs: Pairs,
    interfaces: Vec<u32>,
    link_flags: HashMap<u32, LinkFlags>,
    confirmation: Confirmation,
    keep_alive_at: Nanos,
}

impl NextHops {
    /// Opens the netlink sockets. `writer` sets the hops; no other writer may.
    ///
    /// # Errors
    /// `Netlink` if the kernel denies a socket.
    pub fn open(writer: Writer) -> Result<Self, PathError> {
        let failed = |error: io::Error| PathError::Netlink { step: "open", os: error.raw_os_error() };
        Ok(Self {
            writer,
            // Notifications first: no change between the first answer and the first notification is missed.
            notifications: Notifications::open().map_err(failed)?,
            kernel: Kernel::open().map_err(failed)?,
            slots: Slots::default(),
            pairs: Pairs::default(),
            interfaces: Vec::new(),
            link_flags: HashMap::new(),
            confirmation: Confirmation::Asked,
            keep_alive_at: Nanos(0),
        })
    }

    /// Permits hops on an interface to which the program is attached.
    pub fn attach(&mut self, ifindex: u32) {
        if !self.interfaces.contains(&ifindex) {
            self.interfaces.push(ifindex);
        }
    }

    /// No longer permits hops on an interface. Its hops are invalid at once; the next [`NextHops::process`] reports
    /// their pairs.
    ///
    /// # Errors
    /// `Map` if the kernel denies access to the table.
    pub fn detach(&mut self, ifindex: u32) -> Result<(), PathError> {
        self.interfaces.retain(|index| *index != ifindex);
        self.doubt(&[Change::All]);
        self.write()
    }

    /// Asks where packets of a pair leave at this moment, without a slot.
    ///
    /// # Errors
    /// The reason for which they would go to the sockets.
    pub fn resolve(&mut self, pair: AddressPair) -> Result<NextHop, Refusal> {
        let target = self.kernel.target(pair.source, pair.destination, &self.interfaces)?;
        state(&mut self.kernel, target, self.confirmation)
    }

    /// Counts a user of the pair's hop, and allots a slot if it has none. A hop without a known neighbour gets a slot
    /// too, and is valid once the kernel knows the neighbour.
    ///
    /// # Errors
    /// The reason for which packets of the pair are left to the sockets; no user is counted.
    pub fn acquire(&mut self, pair: AddressPair, now: Nanos) -> Result<Hop, Refusal> {
        match self.pairs.get(&pair) {
            Some((_, Certainty::Changed)) => Err(Refusal::Changing),
            Some((slot, Certainty::Verified | Certainty::Doubted)) => {
                self.pairs.add_user(&pair);
                Ok(self.hop(slot))
            }
            None => {
                self.pairs.has_room()?;
                let target = self.kernel.target(pair.source, pair.destination, &self.interfaces)?;
                let (kernel, confirmation) = (&mut self.kernel, self.confirmation);
                let slot = self.slots.acquire(target, now, || state(kernel, target, confirmation))?;
                self.pairs.insert(pair, slot);
                if self.write().is_err() {
                    self.release(pair, now);
                    return Err(Refusal::Unknown);
                }
                self.slots.known(slot);
                Ok(self.hop(slot))
            }
        }
    }

    /// Takes a user of the pair's hop away, after its path is closed. Without users, the slot is invalid after the next
    /// [`NextHops::process`], and rests for a second. A pair that is not in use is ignored.
    pub fn release(&mut self, pair: AddressPair, now: Nanos) {
        if let Some((slot, certainty)) = self.pairs.release(pair) {
            if certainty != Certainty::Verified {
                self.slots.trust(slot);
            }
            self.slots.release(slot, now);
        }
    }

    /// Returns what is known of a slot in use.
    #[must_use]
    pub fn hop(&self, slot: u16) -> Hop {
        Hop { slot, state: self.slots.value(slot) }
    }

    /// Returns the time until which [`NextHops::process`] must be called although nothing arrives.
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        if self.pairs.is_queue_empty() { self.keep_alive_at } else { Nanos(0) }
    }

    /// Follows the kernel's notifications, asks again where something may have changed, and confirms neighbours when it
    /// is time. It appends what the caller should know to `events`.
    ///
    /// One call asks about 1,024 pairs at most (25 ms); [`NextHops::deadline`] is in the past while more wait.
    ///
    /// # Errors
    /// The first of these, after everything else is done: `Netlink` if the kernel does not answer, or does not permit
    /// to confirm neighbours (CAP_NET_ADMIN); `Map` if it denies access to the table.
    pub fn process(&mut self, now: Nanos, events: &mut Vec<HopEvent>) -> Result<(), PathError> {
        let followed = self.follow();
        let confirmed = if now >= self.keep_alive_at { self.keep_alive(now) } else { Ok(()) };
        while let Some((slot, target)) = self.slots.next_dirty() {
            let state = state(&mut self.kernel, target, self.confirmation);
            self.slots.set_state(slot, state);
        }
        // Failed neighbours do not wait for the routes.
        let mut written = Ok(());
        while let Some(slot) = self.slots.next_failed()
            && written.is_ok()
        {
            written = self.set_hop(slot, None);
        }
        self.verify(events);
        written = written.and(self.write());
        while let Some(slot) = self.slots.next_change() {
            events.push(HopEvent::HopChanged(self.hop(slot)));
        }
        followed.and(confirmed).and(written)
    }

    /// Reads the notifications, and marks what they concern.
    fn follow(&mut self) -> Result<(), PathError> {
        let mut changes = Vec::new();
        let Self { notifications, kernel, slots, link_flags, .. } = self;
        let drained = notifications.drain(|arrival| {
            let change = match arrival {
                Arrival::Message(message) => concerned(&message, kernel, slots, link_flags),
                Arrival::Lost => Some(Change::All),
            };
            if change == Some(Change::All) || changes.len() >= CHANGES_MAX {
                changes = vec![Change::All];
            } else if !changes.contains(&Change::All) {
                changes.extend(change);
            }
        });
        if changes.contains(&Change::All) {
            for family in IpFamily::ALL {
                kernel.forget_rules(family);
                kernel.forget_routes(family);
            }
            slots.mark(|_| true);
        }
        self.doubt(&changes);
        drained.map_err(|failure| netlink_error("notifications", failure))
    }

    fn doubt(&mut self, changes: &[Change]) {
        let slots = &mut self.slots;
        if !changes.is_empty() {
            self.pairs.doubt(changes, |slot| slots.doubt(slot));
        }
    }

    /// Asks the kernel to confirm the neighbours in use, and queues every pair.
    fn keep_alive(&mut self, now: Nanos) -> Result<(), PathError> {
        self.keep_alive_at = now.saturating_add(KEEP_ALIVE);
        self.kernel.forget_all();
        self.pairs.queue_all();
        let mut result = Ok(());
        let mut confirmation = self.confirmation;
        for slot in self.slots.in_use() {
            let Target { ifindex, neighbour, .. } = self.slots.target(slot);
            // The entry is read just before: a permanent one must not be used.
            let ages = self.kernel.neighbour(ifindex, neighbour).is_ok_and(|found| found.is_some_and(|it| it.ages()));
            if !ages {
                continue;
            }
            match self.kernel.use_neighbour(ifindex, neighbour) {
                Ok(()) => confirmation = Confirmation::Asked,
                // The entry went meanwhile, of which a notification says more.
                Err(Failure::Os(ENOENT)) => {}
                Err(failure) => {
                    if failure == Failure::Os(EPERM) {
                        confirmation = Confirmation::Denied;
                    }
                    result = result.and(Err(netlink_error("keep alive", failure)));
                }
            }
        }
        self.confirmation = confirmation;
        self.slots.mark(|_| true);
        result
    }

    /// Asks about the pairs in the queue.
    fn verify(&mut self, events: &mut Vec<HopEvent>) {
        for _ in 0..PAIRS_PER_CALL {
            let Some((pair, slot, certainty)) = self.pairs.next_queued() else { return };
            let answer = self.kernel.target(pair.source, pair.destination, &self.interfaces);
            if answer == Ok(self.slots.target(slot)) {
                if certainty == Certainty::Doubted {
                    self.slots.trust(slot);
                }
                self.pairs.set_certainty(&pair, Certainty::Verified);
            } else {
                if certainty == Certainty::Verified {
                    self.slots.doubt(slot);
                }
                self.pairs.set_certainty(&pair, Certainty::Changed);
                events.push(HopEvent::RouteChanged { pair, slot, refusal: answer.err() });
            }
        }
    }

    /// Writes the slots that differ from the kernel's table.
    fn write(&mut self) -> Result<(), PathError> {
        while let Some((slot, value)) = self.slots.next_write() {
            self.set_hop(slot, value)?;
        }
        Ok(())
    }

    fn set_hop(&mut self, slot: u16, value: Option<NextHop>) -> Result<(), PathError> {
        self.writer.set_hop(slot, value)?;
        self.slots.written(slot, value);
        Ok(())
    }
}

impl AsFd for NextHops {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.notifications.as_fd()
    }
}

const EPERM: i32 = 1;
const ENOENT: i32 = 2;

fn netlink_error(step: &'static str, failure: Failure) -> PathError {
    let os = match failure {
        Failure::Os(code) => Some(code),
        Failure::Malformed => None,
    };
    PathError::Netlink { step, os }
}

/// Asks where packets of a pair leave, if the program were attached to one interface.
pub(crate) fn next_hop(pair: AddressPair, ifindex: u32) -> Result<NextHop, Refusal> {
    let mut kernel = Kernel::open().map_err(|_| Refusal::Unknown)?;
    let target = kernel.target(pair.source, pair.destination, &[ifindex])?;
    state(&mut kernel, target, Confirmation::Asked)
}

/// Asks for interface and neighbour of a target.
fn state(kernel: &mut Kernel, target: Target, confirmation: Confirmation) -> Result<NextHop, Refusal> {
    let link = kernel.link(target.ifindex).map_err(|_| Refusal::Unknown)?.ok_or(Refusal::LinkDown)?;
    let (from, mtu) = link.judge(target.family)?;
    let neighbour = kernel.neighbour(target.ifindex, target.neighbour).map_err(|_| Refusal::Unknown)?;
    let to = neighbour.ok_or(Refusal::NoNeighbour)?.judge(confirmation)?;
    let mtu = target.mtu.map_or(mtu, |of_route| of_route.min(mtu));
    Ok(NextHop { to, from, ifindex: target.ifindex, mtu: u16::try_from(mtu).unwrap_or(u16::MAX) })
}

/// Marks the slots that a notification concerns, and returns the pairs that it concerns.
fn concerned(
    message: &Message,
    kernel: &mut Kernel,
    slots: &mut Slots,
    link_flags: &mut HashMap<u32, LinkFlags>,
) -> Option<Change> {
    if let Message::NewRoute(route) | Message::DelRoute(route) = message {
        changed_route(route, kernel)
    } else if let Message::NewRule(rule) | Message::DelRule(rule) = message {
        let family = family_of(rule.header.family)?;
        kernel.forget_rules(family);
        Some(Change::Family(family))
    } else if let Message::NewAddress = message {
        // Its routes have notifications.
        None
    } else if let Message::DelAddress(family) = message {
        // Routes that prefer the address go with it; older kernels do not notify that.
        let family = family_of(*family)?;
        kernel.forget_routes(family);
        Some(Change::Family(family))
    } else if let Message::NewNeighbour(entry) | Message::DelNeighbour(entry) = message {
        changed_neighbour(entry, slots)
    } else if let Message::NewLink(link) | Message::DelLink(link) = message {
        let is_gone = matches!(message, Message::DelLink(_));
        changed_link(link, is_gone, slots, link_flags)
    } else {
        Some(Change::All)
    }
}

fn changed_route(message: &RouteMessage, kernel: &mut Kernel) -> Option<Change> {
    let family = family_of(message.header.address_family)?;
    kernel.forget_routes(family);
    Some(Route::read(message).map_or(Change::Family(family), |route| Change::Route(route.prefix)))
}

fn changed_neighbour(message: &NeighbourMessage, slots: &mut Slots) -> Option<Change> {
    family_of(message.header.family)?;
    let Some((ifindex, address, _)) = Neighbour::read(message) else { return Some(Change::All) };
    slots.mark(|target| target.ifindex == ifindex && target.neighbour == address);
    None
}

/// Routes of IPv4 go with their interface without a notification, and may come back with its carrier.
fn changed_link(
    message: &LinkMessage,
    is_gone: bool,
    slots: &mut Slots,
    link_flags: &mut HashMap<u32, LinkFlags>,
) -> Option<Change> {
    let (index, flags) = (message.index, message.flags & (LinkFlags::Up | LinkFlags::LowerUp));
    slots.mark(|target| target.ifindex == index);
    if link_flags.len() >= LINKS_MAX {
        link_flags.clear();
    }
    let before = if is_gone { link_flags.remove(&index) } else { link_flags.insert(index, flags) };
    (is_gone || before != Some(flags)).then_some(Change::All)
}
