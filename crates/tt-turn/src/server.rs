//! The server: each datagram in gives one [`Output`].

mod allocate;
mod binding;
mod channel_bind;
mod clock;
mod create_permission;
mod credential_check;
mod expiry;
mod icmp_in;
mod listing;
mod origins;
mod path_lease;
mod pooled;
mod realms;
mod refresh;
mod relay_in;
mod relay_need;
mod relay_out;
mod reload;
mod reply;
mod reserved;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use tt_meter::{Probe, Stage};
use tt_model::{FiveTuple, IpFamily, Nanos};

use crate::allocation::Allocations;
use crate::bans::Bans;
use crate::channel::Channels;
use crate::config::{Capacity, ChannelNumbers, Config, REQUEST_MAX, RemovedUsers};
use crate::counters::Counters;
use crate::credential::{KeptKeys, RealmCredentials, Secrets, UserPart};
use crate::drop_reason::DropReason;
use crate::event::Events;
use crate::flow::{FlowKey, canonical};
use crate::message::{Class, Message, Method};
use crate::nonce::{Nonces, SecurityFeatures};
use crate::output::{Output, ReplyStatus, WorkerId};
use crate::path::Paths;
use crate::permission::Permissions;
use crate::policy::Rule;
use crate::relay::{
    Draws, IcmpError, OWN_IPS_MAX, PeerPath, RelayAddress, RelayDemand, RelayError, RelayId, Relays, Reservations,
};
use crate::shared::{Charge, Shared, View};
use crate::wire::MAGIC_COOKIE;
use clock::WallClock;
use origins::Origins;

pub use listing::{LiveAllocation, PlaceTraffic};

/// The STUN/TURN server of one worker.
#[derive(Debug)]
pub struct Server {
    config: Config,
    capacity: Capacity,
    worker: WorkerId,
    shared: View,
    counters: Counters,
    policy_hits: Box<[u64]>,
    credentials: RealmCredentials,
    kept_keys: KeptKeys,
    /// Names that the default realm had before, oldest first: requests of live allocations still contain them.
    former_realms: Vec<String>,
    nonces: Nonces,
    clock: WallClock,
    allocations: Allocations,
    permissions: Permissions,
    channels: Channels,
    paths: Paths,
    relays: Relays,
    reservations: Reservations,
    origins: Origins,
    events: Events,
    own_ips: Vec<IpAddr>,
    /// Another server by the family of its address, for a drain.
    alternates: [Option<SocketAddr>; 2],
    /// Absent while nothing is banned.
    bans: Option<Arc<Bans>>,
    /// Transaction ID of the last Data indication.
    indication: u128,
}

/// A STUN request or indication, with its allocation.
#[derive(Clone, Copy, Debug)]
struct Request<'a, 'f> {
    now: Nanos,
    from: &'f FiveTuple,
    /// The address of the listener, which is not the server's address if a balancer names that one.
    listener: &'f SocketAddr,
    flow: FlowKey,
    /// The flow's live allocation.
    allocation: Option<u32>,
    message: Message<'a>,
    method: Method,
}

impl Server {
    /// Creates a server and allocates all its tables.
    #[must_use]
    pub fn new(config: Config, capacity: Capacity, shared: Arc<Shared>, worker: WorkerId, secrets: Secrets) -> Self {
        let mut draws = Draws::new(secrets.seed);
        let seed = draws.next();
        let credentials = RealmCredentials::new(&secrets, config.realms.len(), shared.seed(), capacity.allocations);
        Self {
            nonces: nonces(&config, &secrets, &credentials),
            credentials,
            kept_keys: KeptKeys::new(capacity.allocations),
            former_realms: Vec::new(),
            policy_hits: vec![0; rules_of(&config).count()].into_boxed_slice(),
            clock: WallClock::default(),
            allocations: Allocations::new(capacity.allocations, seed),
            permissions: Permissions::new(capacity.permissions, seed.rotate_left(13)),
            channels: Channels::new(capacity.channels, seed.rotate_left(26)),
            paths: Paths::none(),
            origins: Origins::new(capacity.allocations, config.peer_lists),
            events: Events::new(capacity.allocations, config.grant_reports),
            own_ips: Vec::with_capacity(OWN_IPS_MAX),
            alternates: [None; 2],
            bans: None,
            indication: u128::from(draws.next()) << 32,
            relays: Relays::new(capacity.relays, draws),
            reservations: Reservations::new(capacity.relays),
            counters: Counters::default(),
            config,
            capacity,
            worker,
            shared: View::new(shared),
        }
    }

    /// Sets the wall clock to `unix` since 1970 at `now`, for nonces, time-limited credentials and the times of events.
    ///
    /// Call it at the start and every few seconds. The lifetimes of allocations do not depend on it.
    pub fn set_wall_clock(&mut self, now: Nanos, unix: Nanos) {
        self.clock.set(now, unix);
    }

    /// Replaces users, secrets and nonce keys; the seed stays. Allocates memory; see [`Secrets::index`].
    ///
    /// Allocations stay, keep their keys and can be refreshed. With [`RemovedUsers::EndAllocations`], those whose user
    /// or shared secret is not among the new secrets end at once.
    ///
    /// Returns the credentials before, for a thread that has time to free them.
    pub fn replace_secrets(&mut self, now: Nanos, secrets: &Secrets) -> impl Send + use<> {
        let further = self.config.realms.len();
        let credentials = RealmCredentials::new(secrets, further, self.shared.seed(), self.capacity.allocations);
        let before = core::mem::replace(&mut self.credentials, credentials);
        self.nonces.replace(nonces(&self.config, secrets, &self.credentials));
        if self.config.removed_users == RemovedUsers::EndAllocations {
            self.end_removed_users(now);
        }
        before
    }

    /// Puts the users of `part` in place of those that were in it. Takes a short time.
    ///
    /// Replace all parts, then the secrets with the same parts. Until then allocations of removed users stay. `part` must
    /// be made for this server's [`Shared`]. Returns the users before, for a thread that has time to free them.
    pub fn replace_users(&mut self, part: &UserPart) -> UserPart {
        self.credentials.replace_users(part)
    }

    /// Adds a bound relay socket to the pool.
    ///
    /// # Errors
    /// [`RelayError`] if the number is too large or in use, or the addresses do not fit; nothing changes.
    pub fn add_relay(&mut self, id: RelayId, address: RelayAddress) -> Result<(), RelayError> {
        self.end_rest(id);
        self.add_own(address)?;
        self.relays.add(id, address)
    }

    /// Adds two bound relay sockets, on an even port and the next one, to the pool.
    ///
    /// An Allocate with EVEN-PORT's R bit gets both. Another Allocate breaks up a pair if there is no other relay (RFC
    /// 8656 section 7.2).
    ///
    /// # Errors
    /// [`RelayError`] if a number is too large or in use, or the addresses do not fit; nothing changes.
    pub fn add_relay_pair(
        &mut self,
        even: (RelayId, RelayAddress),
        odd: (RelayId, RelayAddress),
    ) -> Result<(), RelayError> {
        self.end_rest(even.0);
        self.end_rest(odd.0);
        self.add_own(even.1)?;
        self.relays.add_pair(even, odd)
    }

    /// Ends the rest of a retired relay: its port is free for all users. [`Server::add_relay`] does it too.
    pub fn end_rest(&mut self, id: RelayId) {
        if let Some(payer) = self.relays.end_rest(id) {
            self.shared.refund(payer, Charge::RESTING);
        }
    }

    fn add_own(&mut self, address: RelayAddress) -> Result<(), RelayError> {
        for ip in [address.bound.ip(), address.external.ip()] {
            if !self.own_ips.contains(&ip) {
                if self.own_ips.len() == OWN_IPS_MAX {
                    return Err(RelayError::Addresses);
                }
                self.own_ips.push(ip);
            }
        }
        Ok(())
    }

    /// Returns the next request about relay sockets. Call until `None` after every round.
    pub fn poll_relay(&mut self) -> Option<RelayDemand> {
        self.relays.take_retired(self.paths.passed()).map(RelayDemand::Retire)
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns how many keys were derived from shared secrets since the secrets were last replaced.
    ///
    /// The key of a time-limited name is cached after its first verification.
    #[must_use]
    pub fn key_derivations(&self) -> u64 {
        self.credentials.derivations()
    }

    /// Returns each rule of each peer policy with the number of peers that it denied.
    pub fn policy_hits(&self) -> impl Iterator<Item = (&Rule, u64)> {
        rules_of(&self.config).zip(self.policy_hits.iter().copied())
    }

    /// Returns the number of allocations, including expired ones that [`Server::handle_timeout`] has not ended.
    #[must_use]
    pub fn allocations(&self) -> usize {
        self.allocations.len()
    }

    /// Returns the number of permissions, including expired ones that [`Server::handle_timeout`] has not ended.
    #[must_use]
    pub fn permissions(&self) -> usize {
        self.permissions.len()
    }

    /// Returns the number of channels, including expired ones that [`Server::handle_timeout`] has not ended.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Returns the number of free relays of `family`, those of pairs included.
    #[must_use]
    pub fn relays_pooled(&self, family: IpFamily) -> usize {
        self.relays.pooled(family)
    }

    /// Returns the number of free pairs of relays of `family`.
    #[must_use]
    pub fn relay_pairs_pooled(&self, family: IpFamily) -> usize {
        self.relays.paired(family)
    }

    /// Returns the worker's number.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Handles a datagram from a client, known or not. `out` must hold at least 1,500 bytes.
    #[inline]
    pub fn handle_client<P: Probe>(
        &mut self,
        now: Nanos,
        from: &FiveTuple,
        datagram: &[u8],
        out: &mut [u8],
        probe: &mut P,
    ) -> Output {
        probe.begin();
        match datagram.first() {
            Some(first) if self.is_channel_data(*first) => {
                let passed = self.channel_data(now, from, datagram, out, probe);
                self.close_pass(passed, probe)
            }
            Some(_) | None => self.stun(now, (from, &from.server), datagram, out, probe),
        }
    }

    /// As [`Server::handle_client`], for a client of a balancer that has connected to `listener`: this address, and not
    /// that of the server in `from`, selects the realm.
    pub fn handle_proxied<P: Probe>(
        &mut self,
        now: Nanos,
        (from, listener): (&FiveTuple, SocketAddr),
        datagram: &[u8],
        out: &mut [u8],
        probe: &mut P,
    ) -> Output {
        if datagram.first().is_some_and(|first| self.is_channel_data(*first)) {
            return self.handle_client(now, from, datagram, out, probe);
        }
        probe.begin();
        self.stun(now, (from, &listener), datagram, out, probe)
    }

    /// Handles a packet that a relay socket received. `out` must hold at least 64 bytes.
    #[inline]
    pub fn handle_peer<P: Probe>(
        &mut self,
        now: Nanos,
        from: PeerPath,
        datagram: &[u8],
        out: &mut [u8],
        probe: &mut P,
    ) -> Output {
        probe.begin();
        let passed = self.peer_datagram(now, from, datagram.len(), out, probe);
        self.close_pass(passed, probe)
    }

    /// Starts to load what [`Server::prefetch_peer`] reads for a packet of `relay`.
    #[inline]
    pub fn prefetch_relay(&self, relay: RelayId) {
        self.relays.fronts.prefetch(relay);
    }

    /// Starts to load the allocation that [`Server::handle_peer`] reads for a packet from `from`. Worth it some packets
    /// before, when the packets are for many relays.
    #[inline]
    pub fn prefetch_peer(&self, from: PeerPath) {
        if let Some(allocation) = self.relays.fronts.admitting(from.relay, canonical(from.peer).ip()) {
            self.allocations.prefetch(allocation);
        }
    }

    /// Starts to load what [`Server::handle_peer`] looks up for a packet from `from`, if it looks anything up. Worth it
    /// a few packets after [`Server::prefetch_peer`].
    #[inline]
    pub fn prefetch_peer_tables(&self, from: PeerPath) {
        let peer = canonical(from.peer);
        if let Some(index) = self.relays.fronts.admitting(from.relay, peer.ip()) {
            self.channels.prefetch_peer(index, peer);
            self.permissions.prefetch_peer(index, peer.ip());
        }
    }

    /// Handles an ICMP error that a relay socket reported (RFC 8656 section 11.5). `out` must hold at least 64 bytes.
    ///
    /// The payload of the output is empty.
    pub fn handle_icmp<P: Probe>(&mut self, now: Nanos, error: IcmpError, out: &mut [u8], probe: &mut P) -> Output {
        probe.begin();
        let passed = self.icmp_in(now, error, out, probe);
        self.close_pass(passed, probe)
    }

    #[inline(always)]
    fn close_pass<P: Probe>(&mut self, passed: Result<Output, DropReason>, probe: &mut P) -> Output {
        let output = passed.unwrap_or_else(Output::Drop);
        self.counters.count(&output);
        probe.mark(Stage::Serialize);
        probe.end();
        output
    }

    /// Returns whether a datagram with this first byte is ChannelData (RFC 8656 section 12, table 3).
    #[inline]
    fn is_channel_data(&self, first: u8) -> bool {
        match self.config.channel_numbers {
            ChannelNumbers::Rfc8656 => (0x40..=0x4F).contains(&first),
            ChannelNumbers::Rfc5766 => (0x40..=0x7F).contains(&first),
        }
    }

    #[inline]
    fn stun<P: Probe>(
        &mut self,
        now: Nanos,
        arrival: (&FiveTuple, &SocketAddr),
        datagram: &[u8],
        out: &mut [u8],
        probe: &mut P,
    ) -> Output {
        let request = match self.read(now, arrival, datagram, probe) {
            Ok(request) => request,
            Err(reason) => return self.close_pass(Err(reason), probe),
        };
        if request.method == Method::Binding && request.message.unknown_required() == 0 {
            let replied = self.binding(&request, out, probe);
            return self.close_pass(replied.map(|len| Output::Reply { len, status: ReplyStatus::Success }), probe);
        }
        let passed = self.answer(&request, out, probe);
        self.close_pass(passed, probe)
    }

    /// Reads a STUN message, and finds the allocation of its flow.
    #[inline(always)]
    fn read<'a, 'f, P: Probe>(
        &mut self,
        now: Nanos,
        (from, listener): (&'f FiveTuple, &'f SocketAddr),
        datagram: &'a [u8],
        probe: &mut P,
    ) -> Result<Request<'a, 'f>, DropReason> {
        if datagram.len() > REQUEST_MAX && is_request(datagram) {
            return Err(DropReason::RequestLength);
        }
        if self.is_banned(from.client.ip(), now) {
            return Err(DropReason::Banned);
        }
        let flow = FlowKey::of(from);
        let hash = self.allocations.prefetch_flow(&flow);
        let message = Message::parse(datagram)?;
        probe.mark(Stage::Parse);
        let method = validate(&message)?;
        probe.mark(Stage::Validate);
        let allocation = self.count_look_up(self.allocations.find_hashed(&flow, hash, now));
        probe.mark(Stage::LookUp);
        Ok(Request { now, from, listener, flow, allocation, message, method })
    }

    /// Returns the flow's live allocation, and counts the look-up.
    #[inline]
    fn look_up(&mut self, flow: &FlowKey, now: Nanos) -> Option<u32> {
        self.count_look_up(self.allocations.find(flow, now))
    }

    #[inline]
    fn count_look_up(&mut self, found: Option<u32>) -> Option<u32> {
        match found {
            Some(_) => self.counters.flow_hits += 1,
            None => self.counters.flow_misses += 1,
        }
        found
    }

    /// Returns the other worker that has the flow's allocation, if this one has none.
    #[inline]
    fn other_owner(&self, flow: &FlowKey, allocation: Option<u32>) -> Option<WorkerId> {
        match allocation {
            Some(_) => None,
            None => self.shared.flow_owner(flow).filter(|owner| *owner != self.worker),
        }
    }
}

/// Iterates over the rules of all peer policies, those of the default realm first.
fn rules_of(config: &Config) -> impl Iterator<Item = &Rule> + Clone {
    config.peer_policy.rules().iter().chain(config.realm_policies.rules())
}

/// Creates the nonces. Their lifetime is at most an hour (RFC 8656 section 5).
fn nonces(config: &Config, secrets: &Secrets, credentials: &RealmCredentials) -> Nonces {
    let features = SecurityFeatures {
        password_algorithms: config.password_algorithms.offer().is_some(),
        username_anonymity: credentials.understands_hashes(),
    };
    let previous = secrets.nonce_key_previous.as_ref();
    Nonces::new(&secrets.nonce_key, previous, config.nonce_lifetime_s.min(3_600), features)
}

/// Returns whether a STUN request begins here (RFC 8489 section 5): both bits of the class are 0, then the magic cookie.
fn is_request(datagram: &[u8]) -> bool {
    datagram.first_chunk().is_some_and(|[high, low, _, _, cookie @ ..]: &[u8; 8]| {
        u16::from_be_bytes([*high, *low]) & 0xC110 == 0 && u32::from_be_bytes(*cookie) == MAGIC_COOKIE
    })
}

/// Returns the method, or why the message is discarded (RFC 8489 section 6.3): wrong class for the method, or a wrong
/// FINGERPRINT.
#[inline]
fn validate(message: &Message<'_>) -> Result<Method, DropReason> {
    let method = message.method().map_err(|_| DropReason::Method)?;
    match (message.class(), method) {
        (Class::Request, Method::Send | Method::Data)
        | (Class::Indication, Method::Allocate | Method::Refresh | Method::CreatePermission | Method::ChannelBind) => {
            Err(DropReason::Method)
        }
        (Class::Success | Class::Error, _) | (Class::Indication, Method::Data) => Err(DropReason::Class),
        (Class::Indication, Method::Binding) => Err(DropReason::BindingIndication),
        (Class::Indication, Method::Send)
        | (
            Class::Request,
            Method::Binding | Method::Allocate | Method::Refresh | Method::CreatePermission | Method::ChannelBind,
        ) if message.has_valid_fingerprint() => Ok(method),
        (Class::Request | Class::Indication, _) => Err(DropReason::Fingerprint),
    }
}
