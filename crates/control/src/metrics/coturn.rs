//! The names of coturn's metrics (its src/apps/relay/prom_server.c), for dashboards that were made for them.
//!
//! Traffic is the payload that was relayed, live, where coturn adds all bytes of a session, some of them at its end.

use tt_status::turn::TurnStatus;

use super::Exposition;

/// The type of coturn's allocations, by transport of the client.
const TYPES: [&str; 3] = ["UDP", "TCP", "TLS/TCP"];

/// A name of coturn's with what it counts and how much that is.
type Traffic = (&'static str, &'static str, u64);

impl Exposition {
    pub(super) fn coturn(&mut self, turn: &TurnStatus) {
        let (bindings, of) = (&turn.bindings, &turn.allocations);
        let mut count = |name: &str, help: &str, value: u64| self.single(name, "counter", help, value as f64);
        count("stun_binding_request", "Binding requests.", bindings.requests);
        count("stun_binding_response", "Success responses to Binding.", bindings.answered);
        count("stun_binding_error", "Other Binding requests.", bindings.requests.saturating_sub(bindings.answered));
        let unauthorized: u64 = turn.errors.iter().filter(|error| error.code == 401).map(|error| error.count).sum();
        count("turn_unauthenticated_401_responses", "Responses with 401, over every transport.", unauthorized);
        let dropped: u64 = turn.ledger.drops.iter().map(|drop| drop.count).sum();
        count("turn_packet_processed", "Datagrams that came in.", turn.ledger.input);
        count("turn_packet_dropped", "Datagrams dropped.", dropped);
        let traffic: [Traffic; 8] = [
            ("rcvp", "Payloads from clients.", of.to_peers_packets),
            ("rcvb", "Payload from clients, bytes.", of.to_peers_bytes),
            ("sentp", "Payloads to clients.", of.to_clients_packets),
            ("sentb", "Payload to clients, bytes.", of.to_clients_bytes),
            ("peer_rcvp", "Payloads from peers.", of.to_clients_packets),
            ("peer_rcvb", "Payload from peers, bytes.", of.to_clients_bytes),
            ("peer_sentp", "Payloads to peers.", of.to_peers_packets),
            ("peer_sentb", "Payload to peers, bytes.", of.to_peers_bytes),
        ];
        for (name, help, value) in traffic {
            let of_realm = format!("turn_traffic_{name}");
            self.family(&of_realm, "counter", help);
            self.sample(&of_realm, &[("realm", &turn.realm)], value as f64);
            self.single(&format!("turn_total_traffic_{name}"), "counter", help, value as f64);
        }
        self.family("turn_total_allocations", "gauge", "Live allocations, by transport of the client.");
        let live = &of.live_by_transport;
        for (name, value) in TYPES.into_iter().zip([live.udp, live.tcp, live.tls]) {
            self.sample("turn_total_allocations", &[("type", name)], value as f64);
        }
    }
}
