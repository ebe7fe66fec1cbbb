//! Sockets that have something to read, each at most once, those of clients before those of peers.

use std::collections::VecDeque;

use crate::poll_key::{StreamKey, relay_of, shared_of, stream_of};

/// Initial `recvmmsg` batch of one socket.
const READ_FIRST: usize = 4;

/// A socket that has something to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) key: u64,
    /// Datagrams to request in one call.
    pub(crate) want: usize,
}

impl Ready {
    /// Returns the first turn of the socket with `key`.
    pub(crate) const fn first(key: u64) -> Self {
        Self { key, want: READ_FIRST }
    }
}

/// Who sends to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Clients: UDP listeners, stream listeners and connections.
    Clients,
    /// Peers: relay sockets, or the ones that relays share. Strangers may spray all of them.
    Peers,
}

impl Side {
    fn of(key: u64) -> Self {
        let is_of_peers = stream_of(key).is_none() && (relay_of(key).is_some() || shared_of(key).is_some());
        if is_of_peers { Self::Peers } else { Self::Clients }
    }
}

/// Buffers of a round that are kept for peers while both sides wait.
pub(crate) const PEERS_ROOM: usize = 16;
/// Maximum number of turns of clients in a round while peers wait. A connection may take a turn without a message.
pub(crate) const CLIENT_TURNS_MAX: usize = 64;

/// The queues of both sides. Every operation takes constant time.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    clients: VecDeque<Ready>,
    peers: VecDeque<Ready>,
    waiting: WaitingKeys,
}

impl ReadyQueue {
    /// Adds a socket to the end of its side's queue, unless it waits already.
    pub(crate) fn push(&mut self, turn: Ready) {
        if self.waiting.insert(turn.key) {
            self.queue(Side::of(turn.key)).push_back(turn);
        }
    }

    /// Returns whose turn is next, and how many of the `room` free buffers it may take, after `client_turns` turns of
    /// clients in this round. Clients go first; some room is kept for peers.
    pub(crate) fn next_side(&self, room: usize, client_turns: usize) -> Option<(Side, usize)> {
        match (self.clients.is_empty(), self.peers.is_empty()) {
            _ if room == 0 => None,
            (true, true) => None,
            (false, true) => Some((Side::Clients, room)),
            (false, false) if room > PEERS_ROOM && client_turns < CLIENT_TURNS_MAX => {
                Some((Side::Clients, room - PEERS_ROOM))
            }
            (_, false) => Some((Side::Peers, room)),
        }
    }

    /// Takes the next socket of a side.
    pub(crate) fn pop(&mut self, side: Side) -> Option<Ready> {
        let turn = self.queue(side).pop_front()?;
        self.waiting.remove(turn.key);
        Some(turn)
    }

    /// Returns whether no socket waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.peers.is_empty()
    }

    fn queue(&mut self, side: Side) -> &mut VecDeque<Ready> {
        match side {
            Side::Clients => &mut self.clients,
            Side::Peers => &mut self.peers,
        }
    }
}

/// One bit for each key that waits. Keys of one kind are numbered from 0, so that the bits are few.
#[derive(Debug, Default)]
struct WaitingKeys {
    kinds: [Vec<u64>; 5],
}

impl WaitingKeys {
    /// Sets the key's bit; returns false if it was set.
    fn insert(&mut self, key: u64) -> bool {
        let (kind, word, bit) = place(key);
        let words = &mut self.kinds[kind];
        if word >= words.len() {
            words.resize(word + 1, 0);
        }
        let is_new = words[word] & bit == 0;
        words[word] |= bit;
        is_new
    }

    fn remove(&mut self, key: u64) {
        let (kind, word, bit) = place(key);
        if let Some(word) = self.kinds[kind].get_mut(word) {
            *word &= !bit;
        }
    }
}

/// Returns the kind of a key, its word and its bit there.
fn place(key: u64) -> (usize, usize, u64) {
    let (kind, number) = match (stream_of(key), relay_of(key)) {
        (Some(StreamKey::Listener(number)), _) => (0, number),
        (Some(StreamKey::Connection(slot)), _) => (1, slot),
        (None, Some(relay)) => (2, relay.0),
        (None, None) if shared_of(key).is_some() => (4, key as u32),
        (None, None) => (3, key as u32),
    };
    (kind, (number / u64::BITS) as usize, 1 << (number % u64::BITS))
}

#[cfg(test)]
mod tests {
    use tt_model::IpFamily;
    use tt_turn::relay::RelayId;

    use super::*;
    use crate::poll_key::{connection_key, listener_key, relay_key, shared_key};

    fn popped(queue: &mut ReadyQueue, side: Side) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop(side)).map(|turn| turn.key).collect()
    }

    #[test]
    fn a_socket_waits_once_whatever_its_kind() {
        // A listener, a relay, a stream listener and a connection of the same number.
        let kinds =
            |number: u32| [u64::from(number), relay_key(RelayId(number)), listener_key(number), connection_key(number)];
        let mut queue = ReadyQueue::default();
        for key in [0, 1, 63, 64, 6_000].into_iter().flat_map(kinds) {
            queue.push(Ready::first(key));
            queue.push(Ready { key, want: 32 });
        }
        let (clients, peers) = (popped(&mut queue, Side::Clients), popped(&mut queue, Side::Peers));
        assert_eq!((clients.len(), peers.len()), (15, 5));
        assert_eq!(clients[..3], [0, listener_key(0), connection_key(0)]);
        assert_eq!(peers[..2], [relay_key(RelayId(0)), relay_key(RelayId(1))]);
        assert!(queue.is_empty());
        IpFamily::ALL.into_iter().for_each(|family| queue.push(Ready::first(shared_key(family))));
        queue.push(Ready::first(0));
        assert_eq!(popped(&mut queue, Side::Peers), IpFamily::ALL.map(shared_key));
        assert_eq!(popped(&mut queue, Side::Clients), [0]);
        queue.push(Ready::first(peers[4]));
        assert_eq!(popped(&mut queue, Side::Peers), [peers[4]], "what was taken may wait again");
    }

    #[test]
    fn clients_go_first_and_leave_room_for_peers() {
        let mut queue = ReadyQueue::default();
        assert_eq!(queue.next_side(64, 0), None);
        queue.push(Ready::first(relay_key(RelayId(7))));
        assert_eq!(queue.next_side(64, 0), Some((Side::Peers, 64)));
        queue.push(Ready::first(0));
        assert_eq!(queue.next_side(64, 0), Some((Side::Clients, 64 - PEERS_ROOM)));
        assert_eq!(queue.next_side(PEERS_ROOM + 1, CLIENT_TURNS_MAX - 1), Some((Side::Clients, 1)));
        assert_eq!(queue.next_side(PEERS_ROOM, 0), Some((Side::Peers, PEERS_ROOM)));
        assert_eq!(queue.next_side(64, CLIENT_TURNS_MAX), Some((Side::Peers, 64)), "turns without a message");
        assert_eq!(queue.next_side(0, 0), None);
        assert!(queue.pop(Side::Peers).is_some());
        assert_eq!(queue.next_side(3, CLIENT_TURNS_MAX), Some((Side::Clients, 3)));
    }
}
