//! Traffic of ended allocations, by realm and user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tt_model::sort_short_by;
use tt_status::turn::{EndedTraffic, EndedUser, EndedUsers, RealmTraffic, user_of};
use tt_turn::config::RealmId;
use tt_turn::event::{AllocationEnd, AllocationStart};

use crate::realm_names::RealmNames;

/// Users with a row of their own. Of more, the one whose last allocation ended first goes to the other users.
const USERS_MAX: usize = 4_096;

/// The traffic of all ended allocations since the start. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct EndedAllocations {
    realms: RealmNames,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    users: HashMap<(RealmId, String), Row>,
    others: EndedTraffic,
    /// The traffic of each realm.
    by_realm: HashMap<RealmId, EndedTraffic>,
    /// Number of ends.
    ends: u64,
}

#[derive(Debug, Default)]
struct Row {
    traffic: EndedTraffic,
    /// The number of its last end.
    last: u64,
}

impl EndedAllocations {
    pub(crate) fn new(realms: RealmNames) -> Self {
        Self { realms, table: Arc::default() }
    }

    /// Counts the end of an allocation.
    pub(crate) fn count(&self, start: &AllocationStart, end: &AllocationEnd) {
        let name = String::from_utf8_lossy(start.user.as_bytes());
        self.table().count(
            start.realm,
            user_of(&name),
            &EndedTraffic {
                allocations: 1,
                to_peers_bytes: end.bytes_to_peers,
                to_clients_bytes: end.bytes_to_client,
                to_peers_packets: end.packets_to_peers,
                to_clients_packets: end.packets_to_client,
            },
        );
    }

    /// Returns the traffic of each realm that had an allocation, by name.
    pub(crate) fn by_realm(&self) -> Vec<RealmTraffic> {
        let of = |(realm, traffic): (&RealmId, &EndedTraffic)| RealmTraffic {
            realm: self.realms.of(*realm),
            traffic: *traffic,
        };
        let mut all: Vec<_> = self.table().by_realm.iter().map(of).collect();
        sort_short_by(&mut all, |a, b| a.realm.cmp(&b.realm));
        all
    }

    /// Returns the users that have relayed most, at most `rows_max`.
    pub(crate) fn users(&self, rows_max: usize) -> EndedUsers {
        let table = self.table();
        let mut all: Vec<_> = table.users.iter().map(|((realm, user), row)| (*realm, user, row.traffic)).collect();
        sort_short_by(&mut all, |a, b| b.2.bytes().cmp(&a.2.bytes()).then_with(|| a.1.cmp(b.1)));
        let users = all.len();
        let list = all.into_iter().take(rows_max);
        let list =
            list.map(|(realm, user, traffic)| EndedUser { realm: self.realms.of(realm), user: user.clone(), traffic });
        let mut total = EndedTraffic::default();
        table.by_realm.values().for_each(|traffic| total.add(traffic));
        EndedUsers { users, list: list.collect(), others: table.others, total }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn count(&mut self, realm: RealmId, user: &str, traffic: &EndedTraffic) {
        self.ends += 1;
        self.by_realm.entry(realm).or_default().add(traffic);
        let row = self.users.entry((realm, user.to_owned())).or_default();
        row.traffic.add(traffic);
        row.last = self.ends;
        if self.users.len() > USERS_MAX
            && let Some(oldest) = self.users.iter().min_by_key(|(_, row)| row.last).map(|(key, _)| key.clone())
            && let Some(row) = self.users.remove(&oldest)
        {
            self.others.add(&row.traffic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(bytes: u64) -> EndedTraffic {
        EndedTraffic {
            allocations: 1,
            to_peers_bytes: bytes,
            to_clients_bytes: 2 * bytes,
            to_peers_packets: 3 * bytes,
            to_clients_packets: 4 * bytes,
        }
    }

    #[test]
    fn the_rows_and_the_other_users_have_all_traffic() {
        let mut table = Table::default();
        let other = RealmId::further(0);
        table.count(RealmId::DEFAULT, "first", &traffic(7));
        table.count(other, "first", &traffic(1));
        let mut expected = [traffic(7), traffic(1)];
        for number in 0..USERS_MAX as u64 + 10 {
            table.count(other, &format!("user {number}"), &traffic(number));
            expected[1].add(&traffic(number));
            // It ends again and again, so it keeps its row.
            table.count(RealmId::DEFAULT, "first", &traffic(5));
            expected[0].add(&traffic(5));
        }
        assert_eq!((table.users.len(), table.by_realm[&RealmId::DEFAULT]), (USERS_MAX, expected[0]));
        assert_eq!(table.by_realm[&other], expected[1]);
        assert_eq!(table.users[&(RealmId::DEFAULT, "first".to_owned())].traffic, expected[0]);
        assert!(!table.users.contains_key(&(other, "first".to_owned())), "its end is the oldest");
        let mut sum = table.others;
        table.users.values().for_each(|row| sum.add(&row.traffic));
        let [mut all, other] = expected;
        all.add(&other);
        assert_eq!((sum, table.others.allocations), (all, 12));
    }
}
