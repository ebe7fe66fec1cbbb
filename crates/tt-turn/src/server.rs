//! The server: datagrams in, one [`Output`] each out.

mod allocate;
mod binding;
mod channel_bind;
mod clock;
mod create_permission;
mod credential_check;
mod expiry;
mod icmp_in;
mod listing;
mod refresh;
mod relay_in;
mod relay_out;
mod reload;
mod reply;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use tt_meter::{Probe, Stage};
use tt_model::{FiveTuple, Nanos, Transport};

use crate::allocation::Allocations;
use crate::channel::Channels;
use crate::config::{Capacity, ChannelNumbers, Config};
use crate::counters::{Counters, DropReason};
use crate::credential::{Credentials, Secrets};
use crate::error::ErrorCode;
use crate::event::Events;
use crate::flow::FlowKey;
use crate::message::{Class, Message, Method};
use crate::nonce::{Nonces, SecurityFeatures};
use crate::output::{Output, WorkerId};
use crate::permission::Permissions;
use crate::policy::{Rule, RuleIndex};
use crate::refusal::{Refusal, Refused};
use crate::relay::{Draws, Family, IcmpError, PeerPath, RelayAddress, RelayDemand, RelayFault, RelayId, Relays};
use crate::reservation::Reservations;
use crate::shared::Shared;
use allocate::reservation_token;
use clock::WallClock;
use listing::Origins;

pub use listing::LiveAllocation;

/// How many different addresses the relays of a worker may have.
const OWN_IPS_MAX: usize = 64;

/// One worker's STUN/TURN server.
#[derive(Debug)]
pub struct Server {
    config: Config,
    capacity: Capacity,
    worker: WorkerId,
    shared: Arc<Shared>,
    counters: Counters,
    policy_hits: Box<[u64]>,
    credentials: Credentials,
    nonces: Nonces,
    clock: WallClock,
    allocations: Allocations,
    permissions: Permissions,
    channels: Channels,
    relays: Relays,
    reservations: Reservations,
    /// Why the request at hand is refused with 403, 486 or 508, if it is.
    refused: Option<Refused>,
    origins: Origins,
    events: Events,
    own_ips: Vec<IpAddr>,
    /// The transaction identifier of the last Data indication.
    indication: u128,
}

/// One STUN request or indication, with what the look-up found.
#[derive(Clone, Copy, Debug)]
struct Request<'a, 'f> {
    now: Nanos,
    from: &'f FiveTuple,
    flow: FlowKey,
    /// The flow's live allocation.
    allocation: Option<u32>,
    message: Message<'a>,
    method: Method,
}

impl Server {
    /// A server with room for `capacity`; nothing is allocated afterwards.
    #[must_use]
    pub fn new(config: Config, capacity: Capacity, shared: Arc<Shared>, worker: WorkerId, secrets: Secrets) -> Self {
        let mut draws = Draws::new(secrets.seed);
        let seed = draws.next();
        let credentials = Credentials::new(&secrets, shared.seed(), capacity.allocations);
        Self {
            nonces: nonces(&config, &secrets, &credentials),
            credentials,
            policy_hits: vec![0; config.peer_policy.rules().len()].into_boxed_slice(),
            clock: WallClock::default(),
            allocations: Allocations::new(capacity.allocations, seed),
            permissions: Permissions::new(capacity.permissions, seed.rotate_left(13)),
            channels: Channels::new(capacity.channels, seed.rotate_left(26)),
            origins: Origins::new(capacity.allocations),
            events: Events::new(),
            own_ips: Vec::with_capacity(OWN_IPS_MAX),
            indication: u128::from(draws.next()) << 32,
            relays: Relays::new(capacity.relays, draws),
            reservations: Reservations::new(capacity.relays, seed.rotate_left(39)),
            refused: None,
            counters: Counters::default(),
            config,
            capacity,
            worker,
            shared,
        }
    }

    /// Tells the engine that the wall clock reads `unix_s` seconds at `now`: for nonces and time-limited
    /// credentials. Call it at the start and every few seconds; allocations do not depend on it.
    pub fn set_wall_clock(&mut self, now: Nanos, unix_s: u64) {
        self.clock.set(now, unix_s);
    }

    /// Takes other users, secrets and nonce keys in place of the present ones; `secrets.seed` keeps its first value.
    /// Allocations stay, and their data flows: the next request of each is checked against the new ones, so that a
    /// user who is gone gets 401 and the allocation ends with its lifetime. This is the one call that allocates.
    pub fn replace_secrets(&mut self, secrets: &Secrets) {
        self.credentials = Credentials::new(secrets, self.shared.seed(), self.capacity.allocations);
        self.nonces = nonces(&self.config, secrets, &self.credentials);
    }

    /// Registers a bound relay socket: from now on an allocation may draw it.
    ///
    /// # Errors
    /// [`RelayFault`] where the number is too large or in use, or the addresses do not fit; nothing is registered.
    pub fn add_relay(&mut self, id: RelayId, address: RelayAddress) -> Result<(), RelayFault> {
        self.add_own(address)?;
        self.relays.add(id, address)
    }

    /// Registers two bound relay sockets, on an even port and on the next one: an Allocate with EVEN-PORT's R bit may
    /// draw both of them, any other breaks them up where no other is left (RFC 8656 section 7.2).
    ///
    /// # Errors
    /// [`RelayFault`] where a number is too large or in use, or the addresses do not fit; nothing is registered.
    pub fn add_relay_pair(
        &mut self,
        even: (RelayId, RelayAddress),
        odd: (RelayId, RelayAddress),
    ) -> Result<(), RelayFault> {
        self.add_own(even.1)?;
        self.relays.add_pair(even, odd)
    }

    fn add_own(&mut self, address: RelayAddress) -> Result<(), RelayFault> {
        for ip in [address.bound.ip(), address.external.ip()] {
            if !self.own_ips.contains(&ip) {
                if self.own_ips.len() == OWN_IPS_MAX {
                    return Err(RelayFault::Addresses);
                }
                self.own_ips.push(ip);
            }
        }
        Ok(())
    }

    /// The next thing that the engine asks about relay sockets; call until `None` after every round.
    pub fn poll_relay(&mut self) -> Option<RelayDemand> {
        self.relays.take_retired().map(RelayDemand::Retire)
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How often a key was derived from a secret of time-limited credentials since the secrets were last replaced;
    /// for a name that is verified again it is not, as long as its key is kept.
    #[must_use]
    pub fn key_derivations(&self) -> u64 {
        self.credentials.derivations()
    }

    /// How often each rule of the peer policy has refused a peer.
    pub fn policy_hits(&self) -> impl Iterator<Item = (&Rule, u64)> {
        self.config.peer_policy.rules().iter().zip(self.policy_hits.iter().copied())
    }

    /// Live allocations of this worker, expired ones included until [`Server::handle_timeout`] ends them.
    #[must_use]
    pub fn allocations(&self) -> usize {
        self.allocations.len()
    }

    /// Permissions of this worker, expired ones included until [`Server::handle_timeout`] ends them.
    #[must_use]
    pub fn permissions(&self) -> usize {
        self.permissions.len()
    }

    /// Channels of this worker, expired ones included until [`Server::handle_timeout`] ends them.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Relays of IPv4, or else of IPv6, that wait for an allocation, those of pairs included.
    #[must_use]
    pub fn relays_pooled(&self, is_ipv4: bool) -> usize {
        self.relays.pooled(if is_ipv4 { Family::V4 } else { Family::V6 })
    }

    /// Pairs of relays of IPv4, or else of IPv6, that wait for an allocation.
    #[must_use]
    pub fn relay_pairs_pooled(&self, is_ipv4: bool) -> usize {
        self.relays.paired(if is_ipv4 { Family::V4 } else { Family::V6 })
    }

    /// Counts a refusal and keeps it for the event.
    fn refused(&mut self, refusal: Refusal) -> ErrorCode {
        self.counters.refusals[refusal as usize] += 1;
        self.refused = Some(Refused { refusal, rule: None });
        refusal.code()
    }

    /// The same for a peer that a rule denies.
    fn peer_refused(&mut self, rule: RuleIndex) -> ErrorCode {
        let code = self.refused(Refusal::PeerDenied);
        self.refused = Some(Refused { refusal: Refusal::PeerDenied, rule: Some(rule) });
        code
    }

    /// The worker's number.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Handles a datagram from a client (or from anybody: every source may ask). `out` wants 1,500 bytes.
    #[inline]
    pub fn handle_client<'a, P: Probe>(
        &mut self,
        now: Nanos,
        from: &FiveTuple,
        datagram: &'a [u8],
        out: &'a mut [u8],
        probe: &mut P,
    ) -> Output<'a> {
        probe.begin();
        self.counters.received += 1;
        let passed = match datagram.first() {
            Some(first) if self.is_channel_data(*first) => self.channel_data(now, from, datagram, out, probe),
            Some(_) | None => self.stun(now, from, datagram, out, probe),
        };
        self.close_pass(passed, probe)
    }

    /// Handles a packet that a relay socket received. `out` wants 64 bytes.
    #[inline]
    pub fn handle_peer<'a, P: Probe>(
        &mut self,
        now: Nanos,
        from: PeerPath,
        datagram: &'a [u8],
        out: &'a mut [u8],
        probe: &mut P,
    ) -> Output<'a> {
        probe.begin();
        self.counters.received += 1;
        let passed = self.relay_in(now, from, datagram, out, probe);
        self.close_pass(passed, probe)
    }

    /// Handles an ICMP error that a relay socket was told of (RFC 8656 section 11.5). `out` wants 64 bytes. The
    /// answer's payload is empty.
    pub fn handle_icmp<'a, P: Probe>(
        &mut self,
        now: Nanos,
        error: IcmpError,
        out: &'a mut [u8],
        probe: &mut P,
    ) -> Output<'a> {
        probe.begin();
        self.counters.received += 1;
        let passed = self.icmp_in(now, error, out, probe);
        self.close_pass(passed, probe)
    }

    #[inline]
    fn close_pass<'a, P: Probe>(&mut self, passed: Result<Output<'a>, DropReason>, probe: &mut P) -> Output<'a> {
        let output = passed.unwrap_or_else(Output::Drop);
        self.count(&output);
        probe.mark(Stage::Serialize);
        probe.end();
        output
    }

    /// RFC 8656 section 12, table 3: the first byte tells ChannelData from STUN.
    #[inline]
    fn is_channel_data(&self, first: u8) -> bool {
        match self.config.channel_numbers {
            ChannelNumbers::Rfc8656 => (0x40..=0x4F).contains(&first),
            ChannelNumbers::Rfc5766 => (0x40..=0x7F).contains(&first),
        }
    }

    #[inline]
    fn stun<'a, P: Probe>(
        &mut self,
        now: Nanos,
        from: &FiveTuple,
        datagram: &'a [u8],
        out: &'a mut [u8],
        probe: &mut P,
    ) -> Result<Output<'a>, DropReason> {
        let message = Message::parse(datagram)?;
        probe.mark(Stage::Parse);
        let method = validate(&message)?;
        probe.mark(Stage::Validate);
        let flow = FlowKey::of(from);
        let allocation = self.look_up(&flow, now);
        probe.mark(Stage::LookUp);
        let request = Request { now, from, flow, allocation, message, method };
        if method == Method::Binding {
            return self.binding(&request, out, probe);
        }
        let owner = self.other_owner(&request.flow, allocation).or_else(|| self.token_holder(&request));
        if let Some(owner) = owner {
            return Ok(Output::HandOver(owner));
        }
        if method == Method::Send { self.send(&request, out, probe) } else { self.request(&request, out, probe) }
    }

    /// The flow's live allocation; found or not, it is counted.
    #[inline]
    fn look_up(&mut self, flow: &FlowKey, now: Nanos) -> Option<u32> {
        let found = self.allocations.find(flow, now);
        match found {
            Some(_) => self.counters.flow_hits += 1,
            None => self.counters.flow_misses += 1,
        }
        found
    }

    /// The other worker that has the flow's allocation, where this one has none.
    #[inline]
    fn other_owner(&self, flow: &FlowKey, allocation: Option<u32>) -> Option<WorkerId> {
        match allocation {
            Some(_) => None,
            None => self.shared.flow_owner(flow).filter(|owner| *owner != self.worker),
        }
    }

    /// The other worker that holds the relay which an Allocate claims by its token: the flow becomes that worker's. A
    /// connection does not change workers.
    #[inline]
    fn token_holder(&self, request: &Request<'_, '_>) -> Option<WorkerId> {
        let claims = request.method == Method::Allocate
            && request.allocation.is_none()
            && request.from.transport == Transport::Udp;
        let token = claims.then(|| reservation_token(&request.message)).flatten()?;
        self.shared.token_owner(token).filter(|owner| *owner != self.worker)
    }

    #[inline]
    fn count(&mut self, output: &Output<'_>) {
        match output {
            Output::Reply(_) => self.counters.replied += 1,
            Output::ToPeer { payload, .. } => {
                self.counters.relayed += 1;
                self.counters.bytes_to_peers += payload.len() as u64;
            }
            Output::ToClient { payload, .. } => {
                self.counters.relayed += 1;
                self.counters.bytes_to_clients += payload.len() as u64;
            }
            Output::ToWorker { payload, .. } => {
                self.counters.relayed += 1;
                self.counters.bytes_to_peers += payload.len() as u64;
            }
            Output::HandOver(_) => self.counters.handed_over += 1,
            Output::Drop(reason) => self.counters.drops[*reason as usize] += 1,
        }
    }
}

/// RFC 8656 section 5: a nonce lives for an hour at most.
fn nonces(config: &Config, secrets: &Secrets, credentials: &Credentials) -> Nonces {
    let features = SecurityFeatures {
        password_algorithms: config.password_algorithms.offer().is_some(),
        username_anonymity: credentials.understands_hashes(),
    };
    let previous = secrets.nonce_key_previous.as_ref();
    Nonces::new(&secrets.nonce_key, previous, config.nonce_lifetime_s.min(3_600), features)
}

/// RFC 8489 section 6.3: what a server is never sent, and a wrong FINGERPRINT, are silently discarded.
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
        ) if message.fingerprint_is_right() => Ok(method),
        (Class::Request | Class::Indication, _) => Err(DropReason::Fingerprint),
    }
}
