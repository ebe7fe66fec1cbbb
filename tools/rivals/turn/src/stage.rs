//! Preparation of a row: servers on their core, the generator's sockets, allocations.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::client::Client;
use crate::face::Face;
use crate::payload::Pool;
use crate::process::Process;
use crate::rivals::{Contestant, Places};
use crate::rows::{Room, Way};
use crate::stun::{self, Request};
use crate::traffic::{End, Faces, Flow, Form, Traffic};

/// The generator's addresses.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// From where servers are asked whether they are there.
    pub(crate) asker: Ipv4Addr,
    /// Those of clients; each is used once in a server's life, because coturn remembers five-tuples for a while.
    pub(crate) clients: std::ops::Range<u32>,
    /// Those of peers: one for each client, because a server may distinguish its allocations by their peers.
    pub(crate) peers: std::ops::Range<u32>,
}

/// Those of the loopback interface.
pub(crate) const LOOPBACK: Addresses = Addresses {
    asker: Ipv4Addr::new(127, 0, 3, 1),
    clients: 0x7f40_0000..0x7f80_0000,
    peers: 0x7f80_0000..0x7fc0_0000,
};
const CHANNEL: u16 = 0x4000;
/// Setting: how long a server may take to be there.
const START_MAX: Duration = Duration::from_secs(10);
const PAYLOAD_LEN_MAX: usize = 2_048;

/// The generator: two sockets, addresses, payloads.
pub(crate) struct Generator {
    pub(crate) faces: Faces,
    pool: Pool,
    addresses: Addresses,
    unused: std::ops::Range<u32>,
}

/// A server that is there.
pub(crate) struct Running {
    pub(crate) contestant: Contestant,
    pub(crate) process: Process,
    pub(crate) address: SocketAddrV4,
}

/// Flows through a server, and the allocations that they need.
pub(crate) struct Paths {
    pub(crate) flows: Vec<Flow>,
    pub(crate) clients: Vec<Client>,
}

impl Generator {
    pub(crate) fn new(seed: u64, addresses: Addresses) -> anyhow::Result<Self> {
        let face = || Face::bind().context("no socket for the generator");
        let faces = Faces { client: face()?, peer: face()? };
        let unused = addresses.clients.clone();
        Ok(Self { faces, pool: Pool::new(seed, PAYLOAD_LEN_MAX), addresses, unused })
    }

    /// The address of the peer of the client at `ip`.
    fn peer_of(&self, ip: Ipv4Addr) -> Ipv4Addr {
        Ipv4Addr::from_bits(ip.to_bits() - self.addresses.clients.start + self.addresses.peers.start)
    }

    /// Starts a server and waits until it answers.
    pub(crate) fn start(
        &mut self,
        (contestant, room): (Contestant, Room),
        places: &Places,
        cpu: Option<usize>,
    ) -> anyhow::Result<Running> {
        let address = SocketAddrV4::new(contestant.ip(), places.port);
        let command = contestant.command(places, room.allocations())?;
        let process = match room {
            Room::Usual => Process::start(command, cpu)?,
            Room::Accounted(_) => Process::start_in_group(&command, cpu)?,
        };
        self.wait_for(Running { contestant, process, address })
    }

    /// Waits until a server answers.
    pub(crate) fn wait_for(&mut self, mut running: Running) -> anyhow::Result<Running> {
        let (contestant, address) = (running.contestant, running.address);
        let started = Instant::now();
        let mut number = 0_u8;
        loop {
            ensure!(!running.process.has_ended(), "{} ended at once", contestant.name());
            ensure!(started.elapsed() < START_MAX, "{} does not answer", contestant.name());
            number = number.wrapping_add(1);
            let request = Request::new(stun::BINDING, [number; 12]).unsigned();
            self.faces.client.send(self.addresses.asker, address, &request).context("cannot send")?;
            let asked = Instant::now();
            while asked.elapsed() < Duration::from_millis(50) {
                let arrival = self.faces.client.receive().context("cannot receive")?;
                if arrival.is_some_and(|arrival| arrival.from == address) {
                    ensure!(!running.process.has_ended(), "another server answers at {address}");
                    return Ok(running);
                }
            }
        }
    }

    /// A client address that was not used yet.
    pub(crate) fn address(&mut self) -> Ipv4Addr {
        let next = self.unused.next().unwrap_or(self.addresses.clients.start);
        Ipv4Addr::from_bits(next)
    }

    /// Allocates what `way` needs for `count` flows.
    pub(crate) fn paths(&mut self, server: &Running, way: Way, count: usize) -> anyhow::Result<Paths> {
        let mut paths = Paths { flows: Vec::with_capacity(count), clients: Vec::new() };
        for _ in 0..count {
            let flow = match (server.contestant, way) {
                (Contestant::Echo, _) | (_, Way::Binding) => self.there_and_back(server.address),
                (_, Way::ToPeer | Way::FromPeer) => {
                    let client = self.client(server)?;
                    let flow = self.to_and_from_peer(&client, way);
                    paths.clients.push(client);
                    flow
                }
                (_, Way::BetweenClients) => {
                    let [caller, callee] = self.pair(server)?;
                    let flow = Flow {
                        source: caller.ip,
                        to: server.address,
                        channel: Some(CHANNEL),
                        from: server.address,
                        at: callee.ip,
                        channel_there: Some(CHANNEL),
                    };
                    paths.clients.extend([caller, callee]);
                    flow
                }
            };
            paths.flows.push(flow);
        }
        Ok(paths)
    }

    /// A client with an allocation, and a channel to its peer.
    pub(crate) fn client(&mut self, server: &Running) -> anyhow::Result<Client> {
        let ip = self.address();
        let peer = SocketAddrV4::new(self.peer_of(ip), self.faces.peer.port);
        let mut client = Client::allocate(&mut self.faces.client, ip, server.address)?;
        client.bind_channel(&mut self.faces.client, CHANNEL, peer)?;
        Ok(client)
    }

    /// Clients with allocations, without permissions.
    pub(crate) fn allocations(&mut self, server: &Running, count: usize) -> anyhow::Result<Vec<Client>> {
        let allocate = |_| {
            let ip = self.address();
            Client::allocate(&mut self.faces.client, ip, server.address)
        };
        (0..count).map(allocate).collect()
    }

    /// Two clients with allocations, and a channel each to the other's relayed address.
    fn pair(&mut self, server: &Running) -> anyhow::Result<[Client; 2]> {
        let ips = [self.address(), self.address()];
        let face = &mut self.faces.client;
        let mut caller = Client::allocate(face, ips[0], server.address)?;
        let mut callee = Client::allocate(face, ips[1], server.address)?;
        caller.bind_channel(face, CHANNEL, callee.relayed)?;
        callee.bind_channel(face, CHANNEL, caller.relayed)?;
        Ok([caller, callee])
    }

    /// Another client for the memory row: with an allocation, and a channel to a peer that the server relays to.
    pub(crate) fn one_of_many(&mut self, server: &Running, first: Option<&Client>) -> anyhow::Result<Client> {
        if server.contestant != Contestant::TurnRs {
            return self.client(server);
        }
        let ip = self.address();
        let mut client = Client::allocate(&mut self.faces.client, ip, server.address)?;
        if let Some(first) = first {
            client.bind_channel(&mut self.faces.client, CHANNEL, first.relayed)?;
        }
        Ok(client)
    }

    /// From a client's address straight to the peer, without a server: what the generator can do at most.
    pub(crate) fn straight(&mut self) -> Flow {
        let source = self.address();
        let to = SocketAddrV4::new(self.peer_of(source), self.faces.peer.port);
        let from = SocketAddrV4::new(source, self.faces.client.port);
        Flow { source, to, channel: None, from, at: *to.ip(), channel_there: None }
    }

    fn there_and_back(&mut self, server: SocketAddrV4) -> Flow {
        let ip = self.address();
        Flow { source: ip, to: server, channel: None, from: server, at: ip, channel_there: None }
    }

    fn to_and_from_peer(&self, client: &Client, way: Way) -> Flow {
        let (channel, peer) = (Some(CHANNEL), self.peer_of(client.ip));
        if way == Way::ToPeer {
            let (to, from) = (client.server, client.relayed);
            return Flow { source: client.ip, to, channel, from, at: peer, channel_there: None };
        }
        let (to, from) = (client.relayed, client.server);
        Flow { source: peer, to, channel: None, from, at: client.ip, channel_there: channel }
    }

    /// The traffic of `flows`.
    pub(crate) fn traffic(&mut self, flows: Vec<Flow>, form: Form, train: usize) -> Traffic<'_> {
        let peers = self.addresses.peers.clone();
        let end_at = |at: Ipv4Addr| if peers.contains(&at.to_bits()) { End::Peer } else { End::Client };
        let (sender, receiver) = (end_at(flows[0].source), end_at(flows[0].at));
        let Self { faces, pool, .. } = self;
        Traffic { flows, form, sender, receiver, train, pool, faces, scratch: Vec::with_capacity(1 << 16) }
    }

    /// Ends the allocations and forgets what is still on its way.
    pub(crate) fn release(&mut self, clients: Vec<Client>) -> anyhow::Result<()> {
        for mut client in clients {
            client.release(&mut self.faces.client)?;
        }
        self.forget()
    }

    pub(crate) fn forget(&mut self) -> anyhow::Result<()> {
        while self.faces.client.receive()?.is_some() {}
        while self.faces.peer.receive()?.is_some() {}
        Ok(())
    }
}
