//! The rows of one realm, checked.

use std::fmt;

use zeroize::{Zeroize as _, Zeroizing};

use crate::read_error::{ErrorKind, ReadError};

/// RFC 8489 section 14.3: USERNAME has fewer than 509 bytes.
pub(crate) const NAME_LEN_MAX: usize = 508;
/// Longest secret in bytes: coturn's column has 256 characters.
pub(crate) const SECRET_LEN_MAX: usize = 1_024;
/// Longest text of a peer range or an option.
pub(crate) const TEXT_LEN_MAX: usize = 256;
/// Most characters of a key's column.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) const KEY_LEN_MAX: usize = 128;
/// Most users of a realm: about 100 MB in the server.
const USERS_MAX: usize = 200_000;
/// Most secrets: a request with a time-limited name tries all of them.
const SECRETS_MAX: usize = 64;
/// Most origins of a realm.
const ORIGINS_MAX: usize = 1_024;
/// Most rows of each list of peers.
const PEERS_MAX: usize = 4_096;

/// A user with the key of long-term credentials. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyedUser {
    /// The name as in USERNAME.
    pub name: String,
    /// MD5 of name, realm and password (RFC 8489 section 9.2.2).
    pub key: Zeroizing<[u8; 16]>,
}

impl fmt::Debug for KeyedUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedUser").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A list of peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerList {
    /// `allowed_peer_ip`.
    Allowed,
    /// `denied_peer_ip`.
    Denied,
}

/// The options of a realm that are set; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RealmOptions {
    /// `max-bps`: bytes per second of an allocation, in each direction.
    pub max_bps: Option<u64>,
    /// `user-quota`: allocations of a user.
    pub user_quota: Option<u64>,
    /// `total-quota`: allocations of the realm.
    pub total_quota: Option<u64>,
}

/// Why a row is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// A user without a name, or with an empty one.
    NameMissing,
    /// A name of more than 508 bytes.
    NameTooLong,
    /// A name that is not UTF-8, or has a control character.
    NameInvalid,
    /// A user without a key.
    KeyMissing,
    /// A key that is not 32 hexadecimal digits.
    KeyNotHex,
    /// A secret that is missing, empty, too long or not text.
    SecretInvalid,
    /// A range of peers that is no text.
    PeerInvalid,
    /// A `max-bps`, `user-quota` or `total-quota` that is no number.
    OptionInvalid,
    /// An origin that is missing, empty, too long or not text.
    OriginInvalid,
}

impl SkipReason {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::NameMissing,
        Self::NameTooLong,
        Self::NameInvalid,
        Self::KeyMissing,
        Self::KeyNotHex,
        Self::SecretInvalid,
        Self::PeerInvalid,
        Self::OptionInvalid,
        Self::OriginInvalid,
    ];

    /// Returns the name in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NameMissing => "name_missing",
            Self::NameTooLong => "name_too_long",
            Self::NameInvalid => "name_invalid",
            Self::KeyMissing => "key_missing",
            Self::KeyNotHex => "key_not_hex",
            Self::SecretInvalid => "secret_invalid",
            Self::PeerInvalid => "peer_invalid",
            Self::OptionInvalid => "option_invalid",
            Self::OriginInvalid => "origin_invalid",
        }
    }
}

/// Numbers of rows that are not used, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped([u64; SkipReason::ALL.len()]);

impl Skipped {
    /// Counts a row.
    pub fn add(&mut self, reason: SkipReason) {
        self.0[reason as usize] += 1;
    }

    /// Adds the numbers of `other`.
    pub fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }

    /// Returns the number of rows with this reason.
    #[must_use]
    pub const fn count(&self, reason: SkipReason) -> u64 {
        self.0[reason as usize]
    }
}

/// Everything that a database has of one realm. Rows that make no sense are counted in `skipped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// `turnusers_lt`.
    pub users: Vec<KeyedUser>,
    /// `turn_secret`; each of them is valid.
    pub secrets: Vec<Secret>,
    /// `allowed_peer_ip`, as written.
    pub allowed_peers: Vec<String>,
    /// `denied_peer_ip`, as written.
    pub denied_peers: Vec<String>,
    /// `turn_realm_option`.
    pub options: RealmOptions,
    /// `turn_origin_to_realm`: values of ORIGIN that select the realm.
    pub origins: Vec<String>,
    /// Rows that are not used.
    pub skipped: Skipped,
}

/// A secret of time-limited credentials. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Zeroizing<String>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Rows {
    /// Adds a row of `turnusers_lt`; `None` is NULL.
    ///
    /// # Errors
    /// `TooManyRows`.
    pub fn add_user(&mut self, name: Option<&[u8]>, key: Option<&[u8]>) -> Result<(), ReadError> {
        let user = match (user_name(name), user_key(key)) {
            (Ok(name), Ok(key)) => KeyedUser { name: name.to_owned(), key },
            (Err(reason), _) | (Ok(_), Err(reason)) => {
                self.skipped.add(reason);
                return Ok(());
            }
        };
        bound(self.users.len(), USERS_MAX, "users")?;
        self.users.push(user);
        Ok(())
    }

    /// Adds a row of `turn_secret`.
    ///
    /// # Errors
    /// `TooManyRows`.
    pub fn add_secret(&mut self, value: Option<&[u8]>) -> Result<(), ReadError> {
        let Some(secret) = value.and_then(|value| text(value, SECRET_LEN_MAX)) else {
            self.skipped.add(SkipReason::SecretInvalid);
            return Ok(());
        };
        bound(self.secrets.len(), SECRETS_MAX, "secrets")?;
        self.secrets.push(Secret(Zeroizing::new(secret.to_owned())));
        Ok(())
    }

    /// Adds a row of `allowed_peer_ip` or `denied_peer_ip`.
    ///
    /// # Errors
    /// `TooManyRows`.
    pub fn add_peer(&mut self, list: PeerList, value: Option<&[u8]>) -> Result<(), ReadError> {
        let Some(range) = value.and_then(|value| text(value, TEXT_LEN_MAX)) else {
            self.skipped.add(SkipReason::PeerInvalid);
            return Ok(());
        };
        let (peers, name) = match list {
            PeerList::Allowed => (&mut self.allowed_peers, "allowed peers"),
            PeerList::Denied => (&mut self.denied_peers, "denied peers"),
        };
        bound(peers.len(), PEERS_MAX, name)?;
        peers.push(range.to_owned());
        Ok(())
    }

    /// Adds a row of `turn_origin_to_realm`.
    ///
    /// # Errors
    /// `TooManyRows`.
    pub fn add_origin(&mut self, value: Option<&[u8]>) -> Result<(), ReadError> {
        let Some(origin) = value.and_then(|value| text(value, TEXT_LEN_MAX)) else {
            self.skipped.add(SkipReason::OriginInvalid);
            return Ok(());
        };
        bound(self.origins.len(), ORIGINS_MAX, "origins")?;
        self.origins.extend(spellings(origin));
        Ok(())
    }

    /// Adds a row of `turn_realm_option`. Options that coturn does not know are of no concern.
    pub fn add_option(&mut self, name: Option<&[u8]>, value: Option<&[u8]>) {
        let place = match name {
            Some(b"max-bps") => &mut self.options.max_bps,
            Some(b"user-quota") => &mut self.options.user_quota,
            Some(b"total-quota") => &mut self.options.total_quota,
            Some(_) | None => return,
        };
        match value.and_then(|value| text(value, TEXT_LEN_MAX)).and_then(|value| value.trim().parse().ok()) {
            Some(number) => *place = Some(number),
            None => self.skipped.add(SkipReason::OptionInvalid),
        }
    }
}

/// Returns an origin as written, and without the port that is the default of its scheme: `turnadmin` adds that port, and
/// browsers send none (RFC 6454 section 6.2).
fn spellings(origin: &str) -> impl Iterator<Item = String> {
    let defaults = [("https://", ":443"), ("http://", ":80")].into_iter();
    let short = defaults.filter(|(scheme, _)| origin.starts_with(scheme));
    let short = short.filter_map(|(_, port)| origin.strip_suffix(port));
    std::iter::once(origin).chain(short).map(str::to_owned)
}

fn user_name(name: Option<&[u8]>) -> Result<&str, SkipReason> {
    let name = name.filter(|name| !name.is_empty()).ok_or(SkipReason::NameMissing)?;
    if name.len() > NAME_LEN_MAX {
        return Err(SkipReason::NameTooLong);
    }
    let name = std::str::from_utf8(name).map_err(|_| SkipReason::NameInvalid)?;
    if name.chars().any(char::is_control) { Err(SkipReason::NameInvalid) } else { Ok(name) }
}

/// Reads 32 hexadecimal digits, after `0x` or not. PostgreSQL pads the column with spaces.
fn user_key(text: Option<&[u8]>) -> Result<Zeroizing<[u8; 16]>, SkipReason> {
    let text = text.map(<[u8]>::trim_ascii).filter(|text| !text.is_empty()).ok_or(SkipReason::KeyMissing)?;
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let mut key = Zeroizing::new([0; 16]);
    if digits.len() != 2 * key.len() {
        return Err(SkipReason::KeyNotHex);
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let mut nibbles = pair.iter().map(|digit| char::from(*digit).to_digit(16));
        match (nibbles.next().flatten(), nibbles.next().flatten()) {
            (Some(high), Some(low)) => *byte = (high << 4 | low) as u8,
            (_, _) => {
                key.zeroize();
                return Err(SkipReason::KeyNotHex);
            }
        }
    }
    Ok(key)
}

/// Returns text of 1 to `len_max` bytes without control characters.
fn text(bytes: &[u8], len_max: usize) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (1..=len_max).contains(&text.len()).then_some(text).filter(|text| !text.chars().any(char::is_control))
}

fn bound(len: usize, max: usize, what: &str) -> Result<(), ReadError> {
    if len < max {
        return Ok(());
    }
    Err(ReadError::new(ErrorKind::TooManyRows, format_args!("the realm has more than {max} {what}")))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The example of coturn's schema.userdb.redis.
    const KEY: &[u8] = b"7da2270ccfa49786e0115366d3a3d14d";

    fn users(name: &[u8], key: &[u8]) -> Rows {
        let mut rows = Rows::default();
        rows.add_user(Some(name), Some(key)).unwrap();
        rows
    }

    #[test]
    fn a_user_has_a_name_and_32_digits() {
        let key = [0x7d, 0xa2, 0x27, 0x0c, 0xcf, 0xa4, 0x97, 0x86, 0xe0, 0x11, 0x53, 0x66, 0xd3, 0xa3, 0xd1, 0x4d];
        let padded = [KEY, &[b' '; 96]].concat();
        let upper = KEY.to_ascii_uppercase();
        for digits in [KEY, &[b"0x", KEY].concat(), &padded, &upper] {
            let rows = users("gorst\u{e9} \u{2666}".as_bytes(), digits);
            assert_eq!(rows.users[0].name, "gorst\u{e9} \u{2666}");
            assert_eq!(*rows.users[0].key, key);
            assert_eq!(rows.skipped, Skipped::default());
            assert!(!format!("{rows:?}").contains("7d"), "{rows:?}");
        }
    }

    #[test]
    fn names_what_is_wrong_with_a_user() {
        let long = [b'a'; NAME_LEN_MAX + 1];
        for (name, key, reason) in [
            (&b""[..], KEY, SkipReason::NameMissing),
            (&long, KEY, SkipReason::NameTooLong),
            (b"a\xFF", KEY, SkipReason::NameInvalid),
            (b"a\0b", KEY, SkipReason::NameInvalid),
            (b"ann", b"", SkipReason::KeyMissing),
            (b"ann", b"   ", SkipReason::KeyMissing),
            (b"ann", &KEY[1..], SkipReason::KeyNotHex),
            (b"ann", b"7da2270ccfa49786e0115366d3a3d14g", SkipReason::KeyNotHex),
            (b"ann", b"+da2270ccfa49786e0115366d3a3d14d", SkipReason::KeyNotHex),
            // SHA-256, which early versions of coturn could store.
            (b"ann", &[KEY, KEY].concat(), SkipReason::KeyNotHex),
        ] {
            let rows = users(name, key);
            assert_eq!((rows.users.len(), rows.skipped.count(reason)), (0, 1), "{}", reason.name());
        }
        assert_eq!(users(&long[1..], KEY).users.len(), 1);
        let mut rows = Rows::default();
        rows.add_user(None, Some(KEY)).unwrap();
        rows.add_user(Some(b"ann"), None).unwrap();
        let counts = [SkipReason::NameMissing, SkipReason::KeyMissing].map(|reason| rows.skipped.count(reason));
        assert_eq!((rows.users.len(), counts), (0, [1, 1]));
    }

    #[test]
    fn names_what_is_wrong_with_other_rows() {
        let mut rows = Rows::default();
        for secret in [None, Some(&b""[..]), Some(b"a\xFF"), Some(b"a\nb"), Some(&[b'a'; SECRET_LEN_MAX + 1])] {
            rows.add_secret(secret).unwrap();
        }
        rows.add_secret(Some(b"north \xC3\xA9")).unwrap();
        rows.add_peer(PeerList::Allowed, None).unwrap();
        rows.add_peer(PeerList::Denied, Some(&[b'1'; TEXT_LEN_MAX + 1])).unwrap();
        rows.add_peer(PeerList::Allowed, Some(b"10.0.0.1")).unwrap();
        rows.add_peer(PeerList::Denied, Some(b"10.0.0.0-10.0.0.9")).unwrap();
        for (name, value) in [("max-bps", "9"), ("user-quota", " 8 "), ("total-quota", "-7"), ("other", "x")] {
            rows.add_option(Some(name.as_bytes()), Some(value.as_bytes()));
        }
        rows.add_option(None, None);
        rows.add_origin(Some(b"https://a.example")).unwrap();
        for origin in ["", "https://b.example:443", "http://c.example:443", "http://d.example:80"] {
            rows.add_origin(Some(origin.as_bytes())).unwrap();
        }
        let origins = ["https://a", "https://b", "https://b", "http://c", "http://d", "http://d"];
        let ends = ["", ":443", "", ":443", ":80", ""];
        let expected: Vec<_> = origins.iter().zip(ends).map(|(start, end)| format!("{start}.example{end}")).collect();
        assert_eq!(rows.origins, expected);
        assert_eq!(rows.secrets.iter().map(|secret| secret.0.as_str()).collect::<Vec<_>>(), ["north \u{e9}"]);
        assert_eq!(
            (rows.allowed_peers, rows.denied_peers),
            (vec!["10.0.0.1".into()], vec!["10.0.0.0-10.0.0.9".into()])
        );
        assert_eq!(rows.options, RealmOptions { max_bps: Some(9), user_quota: Some(8), total_quota: None });
        let counts = SkipReason::ALL.map(|reason| rows.skipped.count(reason));
        assert_eq!(counts, [0, 0, 0, 0, 0, 5, 2, 1, 1]);
    }

    #[test]
    fn every_list_has_a_bound() {
        let mut rows = Rows::default();
        for number in 0..SECRETS_MAX {
            rows.add_secret(Some(number.to_string().as_bytes())).unwrap();
        }
        let error = rows.add_secret(Some(b"one more")).unwrap_err();
        assert_eq!(error.to_string(), "too_many_rows: the realm has more than 64 secrets");
        for number in 0..PEERS_MAX {
            rows.add_peer(PeerList::Denied, Some(number.to_string().as_bytes())).unwrap();
        }
        assert!(rows.add_peer(PeerList::Denied, Some(b"1")).is_err());
        rows.add_peer(PeerList::Allowed, Some(b"1")).unwrap();
        rows.users = vec![KeyedUser { name: String::new(), key: Zeroizing::default() }; USERS_MAX];
        assert!(rows.add_user(Some(b"ann"), Some(KEY)).is_err());
    }

    proptest! {
        /// A row is used or counted, whatever is in it; a used name is the row's, and a used key is its digits.
        #[test]
        fn every_row_is_used_or_counted(
            name in proptest::option::of(vec(any::<u8>(), 0..600)),
            key in proptest::option::of(prop_oneof![
                vec(any::<u8>(), 0..70),
                "[0-9a-fA-F]{30,34} {0,3}".prop_map(String::into_bytes),
            ]),
        ) {
            let mut rows = Rows::default();
            rows.add_user(name.as_deref(), key.as_deref()).unwrap();
            let skipped: u64 = SkipReason::ALL.iter().map(|reason| rows.skipped.count(*reason)).sum();
            prop_assert_eq!(rows.users.len() as u64 + skipped, 1);
            if let Some(user) = rows.users.first() {
                prop_assert_eq!(Some(user.name.as_bytes()), name.as_deref());
                let digits: String = user.key.iter().map(|byte| format!("{byte:02x}")).collect();
                let text = String::from_utf8(key.unwrap()).unwrap().to_lowercase();
                prop_assert_eq!(digits.as_str(), text.trim());
            }
        }
    }
}
