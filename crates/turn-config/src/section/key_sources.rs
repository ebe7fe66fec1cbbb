//! Where the keys of the section were set.

use std::collections::{BTreeMap, BTreeSet};

/// Former names of keys, which are still accepted, and the names that replace them.
const DEPRECATED: [(&str, &str); 1] = [("linger_us", "busy_poll_us")];

/// Where each key of `[turn]` was set: by a flag, or in a line of a file. It names keys in error texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySources {
    places: BTreeMap<(String, usize), String>,
    flags: BTreeSet<String>,
    deprecated: Vec<(&'static str, &'static str)>,
}

impl KeySources {
    /// Records that value number `index` of `key` is at `place` of a file, `truetick.toml, line 3`.
    pub fn set_place(&mut self, key: &str, index: usize, place: String) {
        let renamed = DEPRECATED.iter().find(|(former, _)| *former == key);
        self.deprecated.extend(renamed);
        let key = renamed.map_or(key, |(_, name)| name);
        self.places.insert((key.to_owned(), index), place);
    }

    /// Records that the flag of `key` was given. A flag overrides the file.
    pub fn set_flag(&mut self, key: &str) {
        self.flags.insert(key.to_owned());
    }

    /// Returns the former names of keys that the file uses, and the names that replace them.
    #[must_use]
    pub fn deprecated(&self) -> &[(&'static str, &'static str)] {
        &self.deprecated
    }

    /// Returns how an error names value number `index` of `key`: `--relay-ip`, or `truetick.toml, line 3: turn.relay_ip`.
    #[must_use]
    pub fn name(&self, key: &str, index: usize) -> String {
        if self.flags.contains(key) {
            return format!("--{}", key.replace('_', "-"));
        }
        let place = self.places.get(&(key.to_owned(), index));
        place.map_or_else(|| format!("turn.{key}"), |place| format!("{place}: turn.{key}"))
    }
}
