//! The JSON lines.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;
use tt_model::Nanos;
use tt_turn::event::{AllocationEnd, AllocationStart};

use super::Entry;
use crate::commands::transport_name;
use crate::realm_names::RealmNames;

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    id: &'a str,
    realm: String,
    user: &'a str,
    client: SocketAddr,
    transport: &'static str,
    listener: SocketAddr,
    relayed: &'a [Relayed],
    start: &'a str,
    #[serde(flatten)]
    end: Option<End>,
}

/// A relayed address; in the second line with the time until which the allocation had it.
#[derive(Serialize)]
struct Relayed {
    address: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

/// What only the second line has.
#[derive(Serialize)]
struct End {
    end: String,
    duration_ms: u64,
    reason: &'static str,
    bytes_to_peers: u64,
    packets_to_peers: u64,
    bytes_to_client: u64,
    packets_to_client: u64,
    peers: Vec<String>,
    peers_not_listed: u32,
}

/// Writes the lines of one run of the server.
pub(super) struct LineWriter {
    /// A random number in every id.
    pub(super) run: u64,
    pub(super) realms: RealmNames,
}

impl LineWriter {
    /// Appends the line of an event.
    pub(super) fn write(&self, to: &mut String, entry: &Entry) {
        let AllocationStart { flow, realm, user, relayed, at, .. } = &entry.event.start;
        let end = entry.event.end.as_ref();
        let id = format!("{:016x}-{}-{}", self.run, entry.worker.0, entry.number);
        let addresses = relayed.iter().enumerate().filter_map(|(family, address)| {
            Some(Relayed { address: (*address)?, until: end.map(|end| time(end.released[family])) })
        });
        let line = Line {
            event: if end.is_some() { "end" } else { "start" },
            id: &id,
            realm: self.realms.of(*realm),
            user: &String::from_utf8_lossy(user.as_bytes()),
            client: flow.client,
            transport: transport_name(flow.transport),
            listener: flow.server,
            relayed: &addresses.collect::<Vec<_>>(),
            start: &time(*at),
            end: end.map(End::of),
        };
        // Strings, numbers and string keys always have a JSON form.
        let text = serde_json::to_string(&line).unwrap_or_default();
        escape(to, &text);
        to.push('\n');
    }
}

impl End {
    fn of(end: &AllocationEnd) -> Self {
        Self {
            end: time(end.at),
            duration_ms: end.duration.0 / 1_000_000,
            reason: end.reason.name(),
            bytes_to_peers: end.bytes_to_peers,
            packets_to_peers: end.packets_to_peers,
            bytes_to_client: end.bytes_to_client,
            packets_to_client: end.packets_to_client,
            peers: end.peers.listed().iter().map(peer).collect(),
            peers_not_listed: end.peers.others(),
        }
    }
}

/// Returns an address without a port for a permission, and with it for a channel.
fn peer(peer: &SocketAddr) -> String {
    if peer.port() == 0 { peer.ip().to_string() } else { peer.to_string() }
}

/// Returns the time since 1970 as RFC 3339 in UTC with milliseconds.
fn time(unix: Nanos) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_nanos(unix.0)).to_string()
}

/// Appends JSON with the characters escaped that change how a terminal shows a line. They occur in strings only.
fn escape(to: &mut String, json: &str) {
    for c in json.chars() {
        let is_format = matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || is_format {
            // Writing to a String cannot fail.
            let _ = write!(to, "\\u{:04x}", u32::from(c));
        } else {
            to.push(c);
        }
    }
}
