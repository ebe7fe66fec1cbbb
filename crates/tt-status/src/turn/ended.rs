//! What ended allocations have relayed, by realm and user.

use serde::Serialize;

/// Returns the user of a name: of a time-limited one, `EXPIRY:ID`, the id.
#[must_use]
pub fn user_of(name: &str) -> &str {
    match name.split_once(':') {
        Some((expiry, id)) if !expiry.is_empty() && !id.is_empty() && expiry.bytes().all(|b| b.is_ascii_digit()) => id,
        Some(_) | None => name,
    }
}

/// What ended allocations have relayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndedTraffic {
    /// Their number.
    pub allocations: u64,
    /// Payload relayed to peers, bytes.
    pub to_peers_bytes: u64,
    /// Payload relayed to clients, bytes.
    pub to_clients_bytes: u64,
    /// Payloads relayed to peers.
    pub to_peers_packets: u64,
    /// Payloads relayed to clients.
    pub to_clients_packets: u64,
}

impl EndedTraffic {
    /// Adds the traffic of others.
    pub const fn add(&mut self, other: &Self) {
        let Self { allocations, to_peers_bytes, to_clients_bytes, to_peers_packets, to_clients_packets } = other;
        self.allocations += *allocations;
        self.to_peers_bytes += *to_peers_bytes;
        self.to_clients_bytes += *to_clients_bytes;
        self.to_peers_packets += *to_peers_packets;
        self.to_clients_packets += *to_clients_packets;
    }

    /// Returns the bytes in both directions.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.to_peers_bytes + self.to_clients_bytes
    }
}

/// What the ended allocations of a realm have relayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RealmTraffic {
    /// The realm.
    pub realm: String,
    /// The traffic.
    #[serde(flatten)]
    pub traffic: EndedTraffic,
}

/// What the ended allocations of a user have relayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndedUser {
    /// The realm of the user.
    pub realm: String,
    /// The user: a name, or the id of time-limited names.
    pub user: String,
    /// The traffic.
    #[serde(flatten)]
    pub traffic: EndedTraffic,
}

/// What ended allocations have relayed since the start, by user: `total` is the sum of all users and `others`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndedUsers {
    /// Users with a row.
    pub users: usize,
    /// Those of them that have relayed most.
    pub list: Vec<EndedUser>,
    /// Users whose allocations ended longest ago: their rows made room for others.
    pub others: EndedTraffic,
    /// All users.
    pub total: EndedTraffic,
}

#[cfg(test)]
mod tests {
    use super::user_of;

    #[test]
    fn the_id_of_a_time_limited_name_is_the_user() {
        // Without an id, the engine takes the whole name, too.
        let users = ["1700000000:ann", "ann", "a:b", ":b", "1700000000:", "12"].map(user_of);
        assert_eq!(users, ["ann", "ann", "a:b", ":b", "1700000000:", "12"]);
    }
}
