//! Names of the TURN REST API, which carry their expiry, and the keys derived for them.

use alloc::boxed::Box;
use alloc::vec;

use super::UserId;
use super::key::{LongTermKey, PasswordAlgorithm};

/// RFC 8489 section 14.3: a name has fewer bytes than this.
const NAME_LEN_MAX: usize = 508;

/// A time-limited name taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeLimited<'a> {
    /// Unix seconds from which on it is worth nothing.
    pub(super) expiry_s: u64,
    /// What stands behind the colon, or the whole name where there is nothing.
    pub(super) id: &'a [u8],
}

impl<'a> TimeLimited<'a> {
    /// Reads `expiry[:id]`; `None` for what is no such name, or no name that OpaqueString could have made.
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

/// The keys of names that have been verified: a place each, found by the name's hash. A name that comes to a place
/// that is taken takes it, and the other's key is derived anew when it comes again.
#[derive(Debug)]
pub(super) struct DerivedKeys {
    places: Box<[Option<Derived>]>,
}

#[derive(Clone, Debug)]
struct Derived {
    user: UserId,
    algorithm: PasswordAlgorithm,
    key: LongTermKey,
}

impl DerivedKeys {
    /// Room for `places` keys, rounded up to a power of two; nothing is kept where that is 0.
    pub(super) fn new(places: usize) -> Self {
        let places = if places == 0 { 0 } else { places.next_power_of_two() };
        Self { places: vec![None; places].into_boxed_slice() }
    }

    pub(super) fn get(&self, user: UserId, algorithm: PasswordAlgorithm) -> Option<&LongTermKey> {
        let derived = self.places.get(self.place(user))?.as_ref();
        derived.filter(|derived| (derived.user, derived.algorithm) == (user, algorithm)).map(|derived| &derived.key)
    }

    pub(super) fn keep(&mut self, user: UserId, algorithm: PasswordAlgorithm, key: LongTermKey) {
        let place = self.place(user);
        if let Some(place) = self.places.get_mut(place) {
            *place = Some(Derived { user, algorithm, key });
        }
    }

    fn place(&self, user: UserId) -> usize {
        user.0 as usize & self.places.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{DerivedKeys, LongTermKey, PasswordAlgorithm, TimeLimited, UserId};

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
        let mac = |key: &LongTermKey| key.sha1.mac(b"text");
        let (md5, sha256) = (PasswordAlgorithm::Md5, PasswordAlgorithm::Sha256);
        let mut keys = DerivedKeys::new(3);
        assert_eq!(keys.places.len(), 4);
        keys.keep(UserId(1), md5, key("one"));
        keys.keep(UserId(2), md5, key("two"));
        assert_eq!(keys.get(UserId(1), md5).map(mac), Some(mac(&key("one"))));
        assert!(keys.get(UserId(1), sha256).is_none() && keys.get(UserId(3), md5).is_none());
        keys.keep(UserId(5), md5, key("five"));
        assert!(keys.get(UserId(1), md5).is_none());
        assert_eq!(keys.get(UserId(2), md5).map(mac), Some(mac(&key("two"))));
        let mut none = DerivedKeys::new(0);
        none.keep(UserId(1), md5, key("one"));
        assert!(none.get(UserId(1), md5).is_none());
    }
}
