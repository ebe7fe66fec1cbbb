//! The reference relay: what RFC 8656 sections 12 and 14 and the IP and UDP rules make of a frame.
//!
//! It shares no code with the program. It parses a frame from the front, decides in the order in which [`Reason`] lists
//! the conditions, and builds the new packet from its parts with checksums calculated in full.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tt_path::{NextHop, Proof, Reason, Tally};

use crate::packet::{ETH_LEN, Packet, UDP, is_accepted, partial_checksum, sum};

const SECOND_NS: u64 = 1_000_000_000;
const HEARTBEAT_NS: u64 = 2 * SECOND_NS;
const FRAME_LEN_MIN: usize = 60;

/// A lease of one direction of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    pub(crate) until: u64,
    pub(crate) epoch: u32,
    pub(crate) hop: u16,
    pub(crate) meter: Option<u32>,
    pub(crate) path: u32,
}

/// A bound channel (RFC 8656 section 12).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    pub(crate) number: u16,
    pub(crate) client: SocketAddr,
    pub(crate) listener: SocketAddr,
    pub(crate) relayed: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) to_peer: Lease,
    pub(crate) to_client: Lease,
}

/// A token bucket, one second deep: RFC 8656 has none, docs say that a full one may owe more than it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    pub(crate) full_at: u64,
    pub(crate) byte_ns_fp24: u64,
}

impl Bucket {
    fn spend(&mut self, now: u64, bytes: usize) -> bool {
        let cost = u64::try_from((u128::from(self.byte_ns_fp24) * bytes as u128) >> 24).unwrap();
        let later = self.full_at.max(now) + cost;
        let is_full = self.full_at <= now;
        let is_enough = is_full || later - now <= SECOND_NS;
        if is_enough {
            self.full_at = later;
        }
        is_enough
    }
}

/// Everything that the server has configured.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) is_on: bool,
    pub(crate) epoch: u32,
    pub(crate) heartbeat: u64,
    /// DSCP values that may leave.
    pub(crate) dscp: Vec<u8>,
    pub(crate) mac: [u8; 6],
    pub(crate) proof: Proof,
    pub(crate) proven: u32,
    pub(crate) seen: u32,
    pub(crate) listeners: Vec<u16>,
    pub(crate) relay_ports: Vec<u16>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) hops: Vec<Option<NextHop>>,
    pub(crate) buckets: Vec<Bucket>,
    pub(crate) tallies: Vec<Tally>,
}

/// What happens to a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It goes up unchanged.
    Up(Option<Reason>),
    Drop(Reason),
    Out {
        frame: Vec<u8>,
        ifindex: u32,
        checksum: Checksum,
    },
}

/// The UDP checksum of a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Checksum {
    Right,
    /// The packet had none.
    Absent,
    /// It was wrong, and the receiver must be able to see that.
    Wrong,
}

/// A parsed frame.
struct Arrival<'a> {
    from: SocketAddr,
    to: SocketAddr,
    hop_limit: u8,
    traffic_class: u8,
    dont_fragment: bool,
    /// The UDP header and its payload.
    udp: &'a [u8],
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

impl Relay {
    pub(crate) fn handle(&mut self, now: u64, frame: &[u8]) -> Verdict {
        match self.decide(now, frame) {
            Ok(verdict) => verdict,
            Err(reason) => Verdict::Up(reason),
        }
    }

    fn decide(&mut self, now: u64, frame: &[u8]) -> Result<Verdict, Option<Reason>> {
        let arrival = self.parse(frame)?;
        let is_to_peer = self.listeners.contains(&arrival.to.port());
        let payload = &arrival.udp[8..];
        let number = if is_to_peer { Some(channel_of(payload).ok_or(Some(Reason::NotChannel))?) } else { None };
        if self.proof == Proof::Off {
            return Err(Some(Reason::Interface));
        }
        if frame[..6] != self.mac {
            return Err(Some(Reason::OtherHost));
        }
        let ends = (arrival.from, arrival.to);
        let found = self.bindings.iter().find(|binding| match number {
            Some(number) => binding.number == number && (binding.client, binding.listener) == ends,
            None => (binding.peer, binding.relayed) == ends,
        });
        let binding = *found.ok_or(Some(Reason::NoFlow))?;
        let lease = if is_to_peer { binding.to_peer } else { binding.to_client };
        let csum = self.judge(now, &lease, &arrival, is_to_peer).map_err(Some)?;
        let hop = self.hops.get(usize::from(lease.hop)).copied().flatten().ok_or(Some(Reason::NoHop))?;
        // RFC 8656 section 12.4: number, length, data. No padding over UDP.
        let (from, to, new_payload) = if is_to_peer {
            (binding.relayed, binding.peer, payload[4..].to_vec())
        } else {
            let len = u16::try_from(payload.len()).unwrap();
            let header = [binding.number.to_be_bytes(), len.to_be_bytes()].concat();
            (binding.listener, binding.client, [&header, payload].concat())
        };
        let data_len = if is_to_peer { payload.len() - 4 } else { payload.len() };
        let packet = Packet {
            mac_to: hop.to,
            mac_from: hop.from,
            from,
            to,
            hop_limit: arrival.hop_limit - 1,
            traffic_class: self.marked(arrival.traffic_class),
            dont_fragment: arrival.dont_fragment,
            id: 0,
            flow_label: 0,
            payload: &new_payload,
        };
        let mut out = packet.build();
        if out.len() - ETH_LEN > usize::from(hop.mtu) {
            return Err(Some(Reason::TooBig));
        }
        if out.len() < FRAME_LEN_MIN {
            return Err(Some(Reason::TooShort));
        }
        self.prove(&arrival, csum).map_err(Some)?;
        let tally = &mut self.tallies[lease.path as usize];
        if let Some(meter) = lease.meter
            && !self.buckets[meter as usize].spend(now, out.len() - ETH_LEN)
        {
            tally.dropped_meter += 1;
            return Ok(Verdict::Drop(Reason::Bandwidth));
        }
        tally.packets += 1;
        tally.bytes += data_len as u64;
        let checksum = if csum == 0 {
            let at = out.len() - new_payload.len() - 2;
            out[at..at + 2].fill(0);
            Checksum::Absent
        } else if is_accepted(arrival.from.ip(), arrival.to.ip(), arrival.udp) {
            Checksum::Right
        } else {
            Checksum::Wrong
        };
        // What follows the IP packet in the frame stays.
        out.extend(&frame[ETH_LEN + ip_len(frame)..]);
        Ok(Verdict::Out { frame: out, ifindex: hop.ifindex, checksum })
    }

    /// Returns the traffic class of the new packet: ECN stays (RFC 8656 section 14), a DSCP that may not leave becomes 0.
    fn marked(&self, traffic_class: u8) -> u8 {
        let dscp = traffic_class / 4;
        if self.dscp.contains(&dscp) { traffic_class } else { traffic_class - 4 * dscp }
    }

    /// Judges lease and header of a packet, and returns its checksum.
    fn judge(&self, now: u64, lease: &Lease, arrival: &Arrival, is_to_peer: bool) -> Result<u16, Reason> {
        let is_alive = self.is_on && self.epoch == lease.epoch && self.heartbeat + HEARTBEAT_NS > now;
        if !is_alive || lease.until <= now {
            return Err(Reason::Stale);
        }
        if arrival.hop_limit <= 1 {
            return Err(Reason::HopLimit);
        }
        let csum = be16(arrival.udp, 6);
        if csum == 0 && (arrival.from.is_ipv6() || !is_to_peer) {
            return Err(Reason::ZeroChecksum);
        }
        Ok(csum)
    }

    /// The first 64 candidates, and one of 4,096 later, are verified in full.
    fn prove(&mut self, arrival: &Arrival, csum: u16) -> Result<(), Reason> {
        if self.proof == Proof::Unproven {
            return Err(Reason::Unproven);
        }
        let (from, to) = (arrival.from.ip(), arrival.to.ip());
        if csum != 0 && csum == partial_checksum(from, to, arrival.udp.len()) {
            if self.proof == Proof::Proving {
                self.proof = Proof::Unproven;
            }
            return Err(Reason::PartialChecksum);
        }
        let mut is_verified = self.proof == Proof::Proving;
        if self.proof == Proof::Proven {
            self.seen += 1;
            is_verified = self.seen.is_multiple_of(4096) && csum != 0;
        }
        if !is_verified {
            return Ok(());
        }
        if csum == 0 {
            return Err(Reason::Proving);
        }
        if !is_accepted(from, to, arrival.udp) {
            return Err(Reason::BadChecksum);
        }
        if self.proof == Proof::Proven {
            return Ok(());
        }
        self.proven += 1;
        if self.proven >= 64 {
            self.proof = Proof::Proven;
        }
        Err(Reason::Proving)
    }

    fn parse<'a>(&self, frame: &'a [u8]) -> Result<Arrival<'a>, Option<Reason>> {
        let ether_type = frame.get(12..14).ok_or(None)?;
        let ip = &frame[ETH_LEN..];
        let is_ours = |udp: &[u8]| {
            let port = be16(udp, 2);
            self.listeners.contains(&port) || self.relay_ports.contains(&port)
        };
        match ether_type {
            [0x08, 0x00] => {
                if ip.len() < 28 || ip[0] >> 4 != 4 || ip[9] != UDP {
                    return Err(None);
                }
                if ip[0] & 15 != 5 {
                    return Err(Some(Reason::Options));
                }
                if be16(ip, 6) & 0x3fff != 0 {
                    return Err(Some(Reason::Fragment));
                }
                let udp = datagram(&ip[20..], usize::from(be16(ip, 2)).wrapping_sub(20), is_ours)?;
                if sum(&[&ip[..20]]) != 0xffff {
                    return Err(Some(Reason::BadChecksum));
                }
                let address = |at: usize| IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&ip[at..at + 4]).unwrap()));
                Ok(Arrival {
                    from: SocketAddr::new(address(12), be16(udp, 0)),
                    to: SocketAddr::new(address(16), be16(udp, 2)),
                    hop_limit: ip[8],
                    traffic_class: ip[1],
                    dont_fragment: ip[6] & 0x40 != 0,
                    udp,
                })
            }
            [0x86, 0xdd] => {
                if ip.len() < 48 || ip[0] >> 4 != 6 {
                    return Err(None);
                }
                match ip[6] {
                    UDP => {}
                    // RFC 8200 section 4: fragment; hop-by-hop options, routing, destination options.
                    44 => return Err(Some(Reason::Fragment)),
                    0 | 43 | 60 => return Err(Some(Reason::Extension)),
                    _ => return Err(None),
                }
                let udp = datagram(&ip[40..], usize::from(be16(ip, 4)), is_ours)?;
                let address = |at: usize| IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&ip[at..at + 16]).unwrap()));
                Ok(Arrival {
                    from: SocketAddr::new(address(8), be16(udp, 0)),
                    to: SocketAddr::new(address(24), be16(udp, 2)),
                    hop_limit: ip[7],
                    traffic_class: (be16(ip, 0) >> 4) as u8,
                    dont_fragment: false,
                    udp,
                })
            }
            [0x81, 0x00] | [0x88, 0xa8] => Err(Some(Reason::Tagged)),
            _ => Err(None),
        }
    }
}

/// The UDP datagram at the front of `bytes`, whose length IP and UDP must agree about.
fn datagram(bytes: &[u8], len: usize, is_ours: impl Fn(&[u8]) -> bool) -> Result<&[u8], Option<Reason>> {
    if !is_ours(bytes) {
        return Err(None);
    }
    if usize::from(be16(bytes, 4)) != len || len < 8 {
        return Err(Some(Reason::Length));
    }
    bytes.get(..len).ok_or(Some(Reason::Length))
}

fn ip_len(frame: &[u8]) -> usize {
    match frame[12] {
        0x08 => usize::from(be16(frame, ETH_LEN + 2)),
        _ => 40 + usize::from(be16(frame, ETH_LEN + 4)),
    }
}

/// The number of a ChannelData message that fills the payload exactly (RFC 8656 sections 12 and 12.4).
fn channel_of(payload: &[u8]) -> Option<u16> {
    let header = payload.get(..4)?;
    let number = be16(header, 0);
    let is_valid = (0x4000..=0x7fff).contains(&number) && usize::from(be16(header, 2)) == payload.len() - 4;
    is_valid.then_some(number)
}
