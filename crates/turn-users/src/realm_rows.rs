//! The rows of several realms.

use std::collections::BTreeSet;

use crate::read_error::{ErrorKind, ReadError};
use crate::rows::Rows;

/// Most rows of peers that count for realms with rows of their own, all realms together.
const REALM_PEERS_MAX: usize = 65_536;

/// Most realms that only origins name.
const OTHERS_MAX: usize = 1_024;

/// Everything that a database has of several realms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealmRows {
    /// Rows with an empty realm, of `allowed_peer_ip` and `denied_peer_ip` alone: they count for every realm.
    pub every: Rows,
    /// The rows of each realm, the default one first.
    pub each: Vec<Rows>,
    /// The name and the rows of each other realm that an origin selects.
    pub others: Vec<(String, Rows)>,
}

impl RealmRows {
    /// Joins the peers without a realm and the rows of each realm.
    ///
    /// # Errors
    /// `TooManyRows`: the realms that have peers have too many, with those without a realm.
    pub fn new(every: Rows, each: Vec<Rows>, others: Vec<(String, Rows)>) -> Result<Self, ReadError> {
        let own = each.iter().chain(others.iter().map(|(_, rows)| rows)).map(Rows::peers_len).filter(|len| *len > 0);
        if own.map(|len| len + every.peers_len()).sum::<usize>() > REALM_PEERS_MAX {
            let text = format_args!("the realms together have more than {REALM_PEERS_MAX} peers");
            return Err(ReadError::new(ErrorKind::TooManyRows, text));
        }
        Ok(Self { every, each, others })
    }

    /// Iterates over the rows of all realms, and those without a realm.
    pub fn all(&self) -> impl Iterator<Item = &Rows> {
        self.each.iter().chain(self.others.iter().map(|(_, rows)| rows)).chain([&self.every])
    }

    /// Returns the names of realms after `known`, without those that are in it or make no sense.
    ///
    /// # Errors
    /// `TooManyRows`.
    #[cfg_attr(not(any(feature = "postgres", feature = "redis", feature = "sqlite")), expect(dead_code))]
    pub(crate) fn other_names(found: Vec<Vec<u8>>, known: &[String]) -> Result<Vec<String>, ReadError> {
        let names = found.into_iter().filter_map(|name| String::from_utf8(name).ok());
        let mut others = BTreeSet::new();
        others.extend(names.filter(|name| !name.is_empty() && !known.contains(name)));
        if others.len() > OTHERS_MAX {
            let text = format_args!("origins select more than {OTHERS_MAX} realms that are not configured");
            return Err(ReadError::new(ErrorKind::TooManyRows, text));
        }
        Ok(others.into_iter().collect())
    }
}

impl Rows {
    /// Returns the allowed and the denied peers.
    #[must_use]
    pub fn peers(&self) -> [&[String]; 2] {
        [&self.allowed_peers, &self.denied_peers]
    }

    fn peers_len(&self) -> usize {
        self.allowed_peers.len() + self.denied_peers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_of_all_realms_together_have_a_bound() {
        let rows = |peers: usize| Rows { denied_peers: vec![String::new(); peers], ..Rows::default() };
        let kind = |every: usize, each: &[usize]| {
            let rows = RealmRows::new(rows(every), each.iter().map(|peers| rows(*peers)).collect(), Vec::new());
            rows.map_err(|error| error.kind).map(|rows| (rows.every.denied_peers.len(), rows.each.len()))
        };
        assert_eq!(kind(4_096, &[0; 1_024]), Ok((4_096, 1_024)), "realms without rows share those of every realm");
        assert_eq!(kind(0, &[4_096; 16]), Ok((0, 16)));
        assert_eq!(kind(0, &[4_096; 17]), Err(ErrorKind::TooManyRows));
        assert_eq!(kind(4_095, &[1; 16]), Ok((4_095, 16)));
        assert_eq!(kind(4_096, &[1; 16]), Err(ErrorKind::TooManyRows));
    }
}
