//! Keys and texts of messages: those of coturn 4.6 and later.

use tt_model::Transport;
use tt_net::stream::TlsNames;
use tt_status::allocation_messages::{AllocationMessage, KeyChange};
use tt_turn::WorkerId;
use tt_turn::event::{GrantRequest, Traffic};

use super::{Entry, Event};
use crate::realm_names::RealmNames;

/// The ids of a worker begin with its number times this, as those of coturn's threads.
const IDS_PER_WORKER: u64 = 1_000_000_000_000_000;

/// Writes messages.
pub(super) struct Texts {
    pub(super) realms: RealmNames,
}

impl Texts {
    /// Appends the messages of an event.
    pub(super) fn write(&self, to: &mut Vec<AllocationMessage>, entry: &Entry) {
        let start = &entry.start;
        let (realm, user) = (self.realms.of(start.realm), String::from_utf8_lossy(start.user.as_bytes()));
        let id = id(entry.worker, entry.number);
        let key = |name: &str| format!("turn/realm/{realm}/user/{user}/allocation/{id}/{name}");
        let mut push = |name: &str, text: String, change| to.push(AllocationMessage { key: key(name), text, change });
        match &entry.event {
            Event::Granted { request, lifetime_s, tls } => {
                let request = match request {
                    GrantRequest::Allocate => "new",
                    GrantRequest::Refresh => "refreshed",
                };
                let (local, remote) = (start.flow.server, start.flow.client);
                let transport = transport(start.flow.transport);
                let TlsNames { version, cipher } = tls.unwrap_or(TlsNames { version: "NONE", cipher: "NONE" });
                let text = format!(
                    "{request} lifetime={lifetime_s}, type={transport}, local={local}, remote={remote}, \
                     ssl={version}, cipher={cipher}"
                );
                push("status", text, KeyChange::Set { lifetime_s: *lifetime_s });
            }
            Event::Relayed(traffic) => {
                push("traffic", of_client(traffic), KeyChange::Keep);
                push("traffic/peer", of_peers(traffic), KeyChange::Keep);
            }
            Event::Ended { rest, total } => {
                push("traffic", of_client(rest), KeyChange::Keep);
                push("traffic/peer", of_peers(rest), KeyChange::Keep);
                push("status", "deleted".to_owned(), KeyChange::Remove);
                push("total_traffic", of_client(total), KeyChange::Keep);
                push("total_traffic/peer", of_peers(total), KeyChange::Keep);
            }
        }
    }
}

/// Returns 18 digits. coturn counts allocations from 1.
fn id(worker: WorkerId, number: u64) -> String {
    format!("{:018}", u64::from(worker.0) * IDS_PER_WORKER + number + 1)
}

/// The server has received from the client what it relays to peers.
fn of_client(traffic: &Traffic) -> String {
    let Traffic { packets_to_peers, bytes_to_peers, packets_to_client, bytes_to_client } = traffic;
    format!("rcvp={packets_to_peers}, rcvb={bytes_to_peers}, sentp={packets_to_client}, sentb={bytes_to_client}")
}

/// And from peers what it relays to the client.
fn of_peers(traffic: &Traffic) -> String {
    let Traffic { packets_to_peers, bytes_to_peers, packets_to_client, bytes_to_client } = traffic;
    format!("rcvp={packets_to_client}, rcvb={bytes_to_client}, sentp={packets_to_peers}, sentb={bytes_to_peers}")
}

/// coturn's name of a transport.
const fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "UDP",
        Transport::Tcp => "TCP",
        Transport::Tls => "TLS/TCP",
    }
}
