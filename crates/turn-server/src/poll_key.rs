//! Keys under which the poller reports sockets.

use tt_model::IpFamily;
use tt_turn::relay::RelayId;

/// Returns the poll key of a relay socket. Listeners have smaller keys.
pub(crate) const fn relay_key(id: RelayId) -> u64 {
    RELAY_KEYS | id.0 as u64
}

/// Returns the relay of a poll key, or `None` for a listener.
pub(crate) const fn relay_of(key: u64) -> Option<RelayId> {
    if key & RELAY_KEYS == 0 { None } else { Some(RelayId(key as u32)) }
}

const RELAY_KEYS: u64 = 1 << 32;

/// A poll key of a socket that all relays of a worker share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedKey {
    /// Datagrams to relays of this family.
    Datagrams(IpFamily),
    /// ICMP errors about datagrams of this family.
    Icmp(IpFamily),
}

const SHARED_KEYS: u64 = 1 << 33;
const SHARED_ICMP: u64 = 1 << 1;

/// Returns the poll key of the socket for datagrams to all relays of a family.
pub(crate) const fn shared_key(family: IpFamily) -> u64 {
    SHARED_KEYS | family as u64
}

/// Returns the poll key of the socket for ICMP errors about datagrams of a family.
pub(crate) const fn icmp_key(family: IpFamily) -> u64 {
    SHARED_KEYS | SHARED_ICMP | family as u64
}

/// Returns what a poll key of a shared socket is for, or `None` for another socket.
pub(crate) fn shared_of(key: u64) -> Option<SharedKey> {
    if stream_of(key).is_some() || key & SHARED_KEYS == 0 {
        return None;
    }
    let family = if key & 1 == IpFamily::V4 as u64 { IpFamily::V4 } else { IpFamily::V6 };
    Some(if key & SHARED_ICMP == 0 { SharedKey::Datagrams(family) } else { SharedKey::Icmp(family) })
}

/// A poll key of a listener or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKey {
    /// The listener of this index.
    Listener(u32),
    /// The connection in this slot.
    Connection(u32),
}

const STREAM_KEYS: u64 = 1 << 62;
const STREAM_LISTENERS: u64 = 1 << 61;

/// Returns the poll key of the stream listener of this index.
pub(crate) const fn listener_key(index: u32) -> u64 {
    STREAM_KEYS | STREAM_LISTENERS | index as u64
}

/// Returns the poll key of the connection in this slot.
pub(crate) const fn connection_key(slot: u32) -> u64 {
    STREAM_KEYS | slot as u64
}

/// Returns the listener or connection of a poll key, or `None` for a UDP socket.
pub(crate) const fn stream_of(key: u64) -> Option<StreamKey> {
    match (key & STREAM_KEYS != 0, key & STREAM_LISTENERS != 0) {
        (true, true) => Some(StreamKey::Listener(key as u32)),
        (true, false) => Some(StreamKey::Connection(key as u32)),
        (false, _) => None,
    }
}
