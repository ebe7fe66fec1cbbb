//! Connections: bytes that arrive in pieces, cut anywhere and joined, and the messages in them.

use std::collections::VecDeque;

use tt_model::{FiveTuple, Nanos};
use tt_net::stream::StreamFramer;

use super::event::Event;
use super::invariants::Failure;
use super::link::Weather;
use super::model::Flow;
use super::world::World;
use crate::draw::Draw;

/// The longest message that the server takes.
const LEN_MAX: usize = 65_536;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToServer,
    ToClient,
}

/// A client's connection.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// When the last piece arrives: at the server, at the client.
    arrivals: [Nanos; 2],
    /// Written and not on its way yet.
    written: [Vec<u8>; 2],
    /// Messages that must come out at the server.
    sent: VecDeque<Vec<u8>>,
    framer: StreamFramer,
    /// The beginning of a message at the client.
    held: Vec<u8>,
    /// Sets apart the pieces of this connection from those of the one before it.
    number: u64,
}

impl Stream {
    /// Another connection takes its place.
    pub(super) fn restart(&mut self, now: Nanos) {
        *self = Self { number: self.number + 1, arrivals: [now; 2], ..Self::default() };
    }
}

/// The message at the start of bytes of a stream, and its length with padding (RFC 8489 section 6.2.2, RFC 8656 section
/// 12.5); `None` where its end has not come.
fn first_message(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let head = bytes.first_chunk::<4>()?;
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let (len, padded) = match head[0] {
        0..0x40 => (20 + length, 20 + length),
        _ => (4 + length, (4 + length).next_multiple_of(4)),
    };
    Some((bytes.get(..len)?, padded)).filter(|_| padded <= bytes.len())
}

/// Cuts bytes into one to four pieces.
fn pieces(draw: &mut Draw, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut ends: Vec<usize> = (0..draw.below(4)).map(|_| draw.below(bytes.len() as u64 + 1) as usize).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut start = 0;
    ends.into_iter().map(|end| bytes[std::mem::replace(&mut start, end)..end].to_vec()).collect()
}

impl World<'_> {
    /// A message is written to a client's connection.
    pub(super) fn write(&mut self, client: usize, way: Way, bytes: &[u8]) {
        let stream = &mut self.streams[client];
        if way == Way::ToServer
            && let Some((message, _)) = first_message(bytes)
        {
            stream.sent.push_back(message.to_vec());
        }
        let (number, is_first) = (stream.number, stream.written[way as usize].is_empty());
        stream.written[way as usize].extend(bytes);
        if is_first {
            let delay = Nanos(self.links[client].below(5_000_000));
            self.later(delay, Event::Flush { client, way, number });
        }
    }

    /// What was written sets out.
    pub(super) fn flush(&mut self, client: usize, way: Way, number: u64) {
        if self.streams[client].number != number {
            return;
        }
        let weather = super::deeds::worse(&self.weather, &self.weather_of[client]);
        // The kernel mends everything but time.
        let slow = Weather { delay_ms: weather.delay_ms, ..Weather::default() };
        let flow = self.clients[client].flow();
        let written = std::mem::take(&mut self.streams[client].written[way as usize]);
        for bytes in pieces(&mut self.links[client], &written) {
            let [Some((delay, bytes)), _] = super::link::carry(&mut self.links[client], &slow, bytes) else { continue };
            let arrival = &mut self.streams[client].arrivals[way as usize];
            *arrival = (*arrival).max(self.now.saturating_add(delay));
            let delay = arrival.saturating_sub(self.now);
            self.later(delay, Event::Piece { client, flow, way, number, bytes });
        }
    }

    /// A piece arrives.
    pub(super) fn piece(
        &mut self,
        client: usize,
        (flow, number): (&FiveTuple, u64),
        way: Way,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        if self.streams[client].number != number {
            return Ok(());
        }
        match way {
            Way::ToServer if self.is_up => self.piece_at_server(client, flow, bytes),
            Way::ToServer => {
                // It was refused.
                self.cut(client);
                Ok(())
            }
            Way::ToClient => self.piece_at_client(client, flow, bytes),
        }
    }

    fn piece_at_server(&mut self, client: usize, flow: &FiveTuple, mut fresh: &[u8]) -> Result<(), Failure> {
        let stream = &mut self.streams[client];
        let mut messages = Vec::new();
        let is_broken = loop {
            match stream.framer.next(&mut fresh, LEN_MAX) {
                Ok(Some(message)) => messages.push(message.to_vec()),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        for message in &messages {
            if stream.sent.pop_front().as_ref() != Some(message) {
                let what = format!("a connection of {} has {message:02x?}, which was not sent", flow.client);
                return Err(Failure { invariant: 6, what, at: self.now });
            }
        }
        // A connection does not begin with ChannelData.
        let begins = !stream.framer.has_begun() && stream.sent.front().is_some_and(|next| next[0] >= 0x40);
        if is_broken && !begins {
            let what = format!("a connection of {} is broken before {:02x?}", flow.client, stream.sent.front());
            return Err(Failure { invariant: 6, what, at: self.now });
        }
        let number = stream.number;
        for message in messages {
            if self.streams[client].number != number {
                break;
            }
            self.model.seen.insert(Flow::of(flow));
            let worker = self.steer(flow);
            self.serve(worker, flow, &message, 0)?;
        }
        if is_broken {
            self.cut(client);
        }
        Ok(())
    }

    fn piece_at_client(&mut self, client: usize, flow: &FiveTuple, bytes: &[u8]) -> Result<(), Failure> {
        let number = self.streams[client].number;
        self.streams[client].held.extend(bytes);
        while self.streams[client].number == number {
            let held = &mut self.streams[client].held;
            if held.first().is_some_and(|first| *first >= 0x80) {
                let what = format!("what follows a message to {} is none: {held:02x?}", flow.client);
                return Err(Failure { invariant: 6, what, at: self.now });
            }
            let Some((message, padded)) = first_message(held).map(|(message, padded)| (message.to_vec(), padded))
            else {
                break;
            };
            held.drain(..padded);
            self.client_receives(flow, &message);
        }
        Ok(())
    }
}
