//! What is sent in a row, and what must arrive for it.

use std::net::{Ipv4Addr, SocketAddrV4};

use nix::errno::Errno;

use crate::face::{Arrival, Face};
use crate::payload::Pool;
use crate::stun::{self, Request, Response};

/// One way through the server, in both ends' eyes.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Where it is sent from, and to.
    pub(crate) source: Ipv4Addr,
    pub(crate) to: SocketAddrV4,
    /// The channel that the sender puts in front.
    pub(crate) channel: Option<u16>,
    /// Where it must come from when it arrives, at which address, and in which channel.
    pub(crate) from: SocketAddrV4,
    pub(crate) at: Ipv4Addr,
    pub(crate) channel_there: Option<u16>,
}

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A Binding request, answered with the address that it came from.
    Binding,
    /// A payload of this many bytes.
    Payload { len: usize },
}

/// Which of the generator's two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Peer,
}

/// The generator's two sockets.
pub(crate) struct Faces {
    pub(crate) client: Face,
    pub(crate) peer: Face,
}

impl Faces {
    fn of(&mut self, end: End) -> &mut Face {
        match end {
            End::Client => &mut self.client,
            End::Peer => &mut self.peer,
        }
    }
}

/// Why a datagram is not one that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Its bytes are not those that were sent.
    Corrupt,
    /// From the wrong address, at the wrong address, or in the wrong channel.
    Astray,
}

/// An arrival's flow and sequence, or what is wrong with it.
pub(crate) type Accepted = Result<(u32, u64), Fault>;

/// Traffic of one row.
pub(crate) struct Traffic<'a> {
    pub(crate) flows: Vec<Flow>,
    pub(crate) form: Form,
    pub(crate) sender: End,
    pub(crate) receiver: End,
    /// Datagrams that are handed to the kernel in one piece; 1 for no segmentation.
    pub(crate) train: usize,
    pub(crate) pool: &'a Pool,
    pub(crate) faces: &'a mut Faces,
    pub(crate) scratch: Vec<u8>,
}

impl Traffic<'_> {
    /// The flow that the datagrams from `sequence` on belong to.
    pub(crate) fn flow_of(&self, sequence: u64) -> u32 {
        ((sequence / self.train as u64) % self.flows.len() as u64) as u32
    }

    /// Sends a train of datagrams that begins with `sequence`.
    pub(crate) fn send(&mut self, sequence: u64) -> Result<(), Errno> {
        let index = self.flow_of(sequence);
        let flow = &self.flows[index as usize];
        self.scratch.clear();
        for sequence in sequence..sequence + self.train as u64 {
            match self.form {
                Form::Binding => {
                    let request = Request::new(stun::BINDING, transaction(index, sequence)).unsigned();
                    self.scratch.extend_from_slice(&request);
                }
                Form::Payload { len } => {
                    if let Some(channel) = flow.channel {
                        self.scratch.extend(channel.to_be_bytes());
                        self.scratch.extend((len as u16).to_be_bytes());
                    }
                    self.pool.write(index, sequence, len, &mut self.scratch);
                }
            }
        }
        let (source, to) = (flow.source, flow.to);
        let face = match self.sender {
            End::Client => &self.faces.client,
            End::Peer => &self.faces.peer,
        };
        if self.train == 1 {
            return face.send(source, to, &self.scratch);
        }
        face.send_train(source, to, &self.scratch, (self.scratch.len() / self.train) as u16)
    }

    /// The next arrival; `None` where nothing is there.
    pub(crate) fn receive(&mut self) -> Result<Option<Accepted>, Errno> {
        let port = self.faces.of(self.receiver).port;
        let Some(arrival) = self.faces.of(self.receiver).receive()? else { return Ok(None) };
        Ok(Some(match self.form {
            Form::Binding => accept_binding(&self.flows, port, &arrival),
            Form::Payload { len } => accept_payload(&self.flows, self.pool, len, &arrival),
        }))
    }
}

fn accept_binding(flows: &[Flow], port: u16, arrival: &Arrival<'_>) -> Accepted {
    let response = Response::parse(arrival.bytes).filter(|response| response.method == stun::BINDING);
    let response = response.filter(|response| !response.is_error).ok_or(Fault::Corrupt)?;
    let (index, sequence) = of_transaction(response.transaction);
    let flow = flows.get(index as usize).ok_or(Fault::Corrupt)?;
    if response.address(stun::XOR_MAPPED_ADDRESS) != Some(SocketAddrV4::new(flow.source, port)) {
        return Err(Fault::Corrupt);
    }
    if arrival.from != flow.from || arrival.at != flow.at {
        return Err(Fault::Astray);
    }
    Ok((index, sequence))
}

fn accept_payload(flows: &[Flow], pool: &Pool, len: usize, arrival: &Arrival<'_>) -> Accepted {
    let has_channel = flows.first().is_some_and(|flow| flow.channel_there.is_some());
    let (channel, bytes) = match arrival.bytes {
        [high, low, _, _, payload @ ..] if has_channel => {
            let stated = usize::from(u16::from_be_bytes([arrival.bytes[2], arrival.bytes[3]]));
            // RFC 8656 section 12.5: over UDP a ChannelData message may be padded.
            (Some(u16::from_be_bytes([*high, *low])), payload.get(..stated).ok_or(Fault::Corrupt)?)
        }
        bytes => (None, bytes),
    };
    let (index, sequence) = pool.verify(bytes, len).ok_or(Fault::Corrupt)?;
    let flow = flows.get(index as usize).ok_or(Fault::Corrupt)?;
    if arrival.from != flow.from || arrival.at != flow.at || channel != flow.channel_there {
        return Err(Fault::Astray);
    }
    Ok((index, sequence))
}

fn transaction(flow: u32, sequence: u64) -> stun::Transaction {
    let mut id = [0; 12];
    id[..4].copy_from_slice(&flow.to_le_bytes());
    id[4..].copy_from_slice(&sequence.to_le_bytes());
    id
}

fn of_transaction(id: stun::Transaction) -> (u32, u64) {
    let [a, b, c, d, rest @ ..] = id;
    (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(rest))
}
