//! Names of the TURN REST API, which contain their expiry, and a cache of their keys.

use alloc::boxed::Box;
use alloc::vec;

use super::UserId;
use super::key::{LongTermKey, PasswordAlgorithm};

/// Longest name in bytes, plus one (RFC 8489 section 14.3).
const NAME_LEN_MAX: usize = 508;

/// The parts of a time-limited name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeLimited<'a> {
    /// Expiry in Unix seconds.
    pub(super) expiry_s: u64,
    /// The part after the colon, or the whole name if there is none.
    pub(super) id: &'a [u8],
}

impl<'a> TimeLimited<'a> {
    /// Reads `expiry[:id]`; returns `None` for any other name and for one that OpaqueString cannot produce.
    pub(super) fn read(name: &'a [u8]) -> Option<Self> {
        let text = core::str::from_utf8(name).ok().filter(|text| text.len() <= NAME_LEN_MAX)?;
        let (expiry, id) = text.split_once(':').unwrap_or((text, ""));
        if !expiry.bytes().all(|byte| byte.is_ascii_digit()) || text.contains(char::is_control) {
            return None;
        }
        let id = if id.is_empty() { name } else { id.as_bytes() };
        Some(Self { expiry_s: expiry.parse().ok()?, id })
    }
}

/// Cache of the keys of verified names, one slot for each hash. A name replaces the name in its slot; the other's key
/// is derived again when it is needed.
#[derive(Debug)]
pub(super) struct DerivedKeys {
    places: Box<[Option<Derived>]>,
}

/// The key of a time-limited name, and what it was derived from.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub(super) key: LongTermKey,
    pub(super) algorithm: PasswordAlgorithm,
    pub(super) whole_name: UserId,
    /// Seeded hash of the name.
    pub(super) name_key: u64,
    /// The user: the name without its expiry.
    pub(super) user: UserId,
    /// Expiry in Unix seconds.
    pub(super) expiry_s: u64,
    /// Digest of the shared secret.
    pub(super) secret: u64,
}

impl DerivedKeys {
    /// Creates a cache of `places` keys, rounded up to a power of two; 0 caches nothing.
    pub(super) fn new(places: usize) -> Self {
        let places = if places == 0 { 0 } else { places.next_power_of_two() };
        Self { places: vec![None; places].into_boxed_slice() }
    }

    /// Returns the slot of a name's key.
    pub(super) fn place(&self, name: UserId) -> u32 {
        (name.0 as usize & self.places.len().saturating_sub(1)) as u32
    }

    /// Returns the name's key if the slot contains it.
    pub(super) fn get(&self, place: u32, name: UserId, algorithm: PasswordAlgorithm) -> Option<&Derived> {
        self.at(place).filter(|derived| (derived.whole_name, derived.algorithm) == (name, algorithm))
    }

    /// Returns the key in a slot, of any name.
    pub(super) fn at(&self, place: u32) -> Option<&Derived> {
        self.places.get(place as usize)?.as_ref()
    }

    pub(super) fn keep(&mut self, place: u32, derived: Derived) {
        if let Some(place) = self.places.get_mut(place as usize) {
            *place = Some(derived);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Derived, DerivedKeys, LongTermKey, PasswordAlgorithm, TimeLimited, UserId};

    #[test]
    fn names_are_taken_apart() {
        let read = |name: &'static str| TimeLimited::read(name.as_bytes()).map(|read| (read.expiry_s, read.id));
        assert_eq!(read("17:ann"), Some((17, &b"ann"[..])));
        assert_eq!(read("17:a:b"), Some((17, &b"a:b"[..])));
        assert_eq!(read("17:"), Some((17, &b"17:"[..])));
        assert_eq!(read("17"), Some((17, &b"17"[..])));
        assert_eq!(read("18446744073709551615:a"), Some((u64::MAX, &b"a"[..])));
        for name in ["", ":", ":ann", "ann", "+17:ann", "-1:ann", "17 :ann", "18446744073709551616:a", "17:a\0", "1:\n"]
        {
            assert_eq!(read(name), None, "{name:?}");
        }
        assert_eq!(TimeLimited::read(b"17:\xFF"), None);
    }

    #[test]
    fn a_place_holds_the_last_key() {
        let key = |text: &str| LongTermKey::md5(text.as_bytes(), b"realm", b"password");
        let mac = |derived: &Derived| derived.key.sha1.mac(b"text");
        let plain = |text: &str| key(text).sha1.mac(b"text");
        let (md5, sha256) = (PasswordAlgorithm::Md5, PasswordAlgorithm::Sha256);
        let mut keys = DerivedKeys::new(3);
        assert_eq!(keys.places.len(), 4);
        let keep = |keys: &mut DerivedKeys, name: UserId, text| {
            let (key, user) = (key(text), UserId(name.0 + 100));
            let derived = Derived { key, algorithm: md5, whole_name: name, name_key: 0, user, expiry_s: 0, secret: 0 };
            keys.keep(keys.place(name), derived);
        };
        let get = |keys: &DerivedKeys, user, algorithm| keys.get(keys.place(user), user, algorithm).map(mac);
        keep(&mut keys, UserId(1), "one");
        keep(&mut keys, UserId(2), "two");
        assert_eq!(get(&keys, UserId(1), md5), Some(plain("one")));
        assert!(get(&keys, UserId(1), sha256).is_none() && get(&keys, UserId(3), md5).is_none());
        keep(&mut keys, UserId(5), "five");
        assert!(get(&keys, UserId(1), md5).is_none());
        assert_eq!(get(&keys, UserId(2), md5), Some(plain("two")));
        assert_eq!(keys.at(1).map(mac), Some(plain("five")));
        let mut none = DerivedKeys::new(0);
        keep(&mut none, UserId(1), "one");
        assert!(get(&none, UserId(1), md5).is_none());
    }
}
