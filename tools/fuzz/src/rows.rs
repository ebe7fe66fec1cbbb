//! Rows of a database of TURN users, and names of databases, judged a second time by what the columns may hold.
//!
//! The bytes are a list of rows: a kind, then its columns, each behind its length. Length 0 is NULL, 255 a column of up to
//! 65,535 equal bytes.

use turn_users::{PeerList, Rows, SkipReason, Source};

use crate::choices::Choices;

/// Rows of one input. More are not needed for any bound but that of users, peers and secrets, which has unit tests.
const ROWS_MAX: usize = 64;

/// What the rows of an input must come to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    users: Vec<(String, [u8; 16])>,
    secrets: Vec<String>,
    peers: [Vec<String>; 2],
    options: [Option<u64>; 3],
    origins: Vec<String>,
    skipped: Vec<&'static str>,
}

/// Reads the rows, and compares what is used and what is skipped, by reason.
///
/// # Panics
/// They disagree; or the text of a source with a password is accepted, or shown.
pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let (mut rows, mut expected) = (Rows::default(), Expected::default());
    for _ in 0..ROWS_MAX {
        if choices.is_spent() {
            break;
        }
        let (kind, first, second) = (choices.byte() % 7, column(&mut choices), column(&mut choices));
        let added = match kind {
            0 => rows.add_user(first.as_deref(), second.as_deref()),
            1 => rows.add_secret(first.as_deref()),
            2 => rows.add_peer(PeerList::Allowed, first.as_deref()),
            3 => rows.add_peer(PeerList::Denied, first.as_deref()),
            4 => {
                rows.add_option(first.as_deref(), second.as_deref());
                Ok(())
            }
            5 => {
                first.iter().for_each(|text| source(text));
                Ok(())
            }
            _ => rows.add_origin(first.as_deref()),
        };
        added.expect("fewer rows than any bound");
        expected.add(kind, first, second);
    }
    assert_eq!(Expected::of(&rows), expected);
}

fn column(choices: &mut Choices<'_>) -> Option<Vec<u8>> {
    match choices.byte() {
        0 => None,
        255 => Some(vec![choices.byte(); usize::from(choices.word())]),
        len => Some(choices.bytes(usize::from(len))),
    }
}

impl Expected {
    fn of(rows: &Rows) -> Self {
        let skipped = SkipReason::ALL.into_iter();
        let skipped = skipped.flat_map(|reason| vec![reason.name(); rows.skipped.count(reason) as usize]);
        let options = &rows.options;
        Self {
            users: rows.users.iter().map(|user| (user.name.clone(), *user.key)).collect(),
            secrets: rows.secrets.iter().map(|secret| secret.0.to_string()).collect(),
            peers: [rows.allowed_peers.clone(), rows.denied_peers.clone()],
            options: [options.max_bps, options.user_quota, options.total_quota],
            origins: rows.origins.clone(),
            skipped: sorted(skipped.collect()),
        }
    }

    fn add(&mut self, kind: u8, first: Option<Vec<u8>>, second: Option<Vec<u8>>) {
        let reason = match kind {
            0 => match (name(first), key(second)) {
                (Ok(name), Ok(key)) => return self.users.push((name, key)),
                (Err(reason), _) | (_, Err(reason)) => reason,
            },
            1 => match plain(first, 1_024) {
                Some(secret) => return self.secrets.push(secret),
                None => "secret_invalid",
            },
            2 | 3 => match plain(first, 256) {
                Some(range) => return self.peers[usize::from(kind - 2)].push(range),
                None => "peer_invalid",
            },
            4 => {
                let names = [&b"max-bps"[..], b"user-quota", b"total-quota"];
                let Some(place) = names.iter().position(|name| first.as_deref() == Some(name)) else { return };
                match plain(second, 256).and_then(|text| text.trim().parse().ok()) {
                    Some(number) => {
                        self.options[place] = Some(number);
                        return;
                    }
                    None => "option_invalid",
                }
            }
            5 => return,
            _ => match plain(first, 256) {
                Some(origin) => return self.add_origin(origin),
                None => "origin_invalid",
            },
        };
        self.skipped.push(reason);
        self.skipped = sorted(std::mem::take(&mut self.skipped));
    }

    fn add_origin(&mut self, origin: String) {
        let short = without_port(&origin);
        self.origins.push(origin);
        self.origins.extend(short);
    }
}

/// The rest of an origin without the default port of its scheme (RFC 6454 section 6.2), where it has that port.
fn without_port(origin: &str) -> Option<String> {
    let (scheme, rest) = origin.split_once("://")?;
    let (host, port) = rest.rsplit_once(':')?;
    matches!((scheme, port), ("http", "80") | ("https", "443")).then(|| format!("{scheme}://{host}"))
}

/// In the order of [`SkipReason::ALL`].
fn sorted(mut names: Vec<&'static str>) -> Vec<&'static str> {
    names.sort_by_key(|name| SkipReason::ALL.iter().position(|reason| reason.name() == *name));
    names
}

/// USERNAME has 1 to 508 bytes of UTF-8 (RFC 8489 section 14.3).
fn name(column: Option<Vec<u8>>) -> Result<String, &'static str> {
    let bytes = column.unwrap_or_default();
    match bytes.len() {
        0 => Err("name_missing"),
        1..509 => plain(Some(bytes), 508).ok_or("name_invalid"),
        _ => Err("name_too_long"),
    }
}

/// 32 hexadecimal digits, with spaces around them and `0x` or not.
fn key(column: Option<Vec<u8>>) -> Result<[u8; 16], &'static str> {
    let bytes = column.unwrap_or_default();
    let is_space = |byte: &&u8| matches!(**byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0C');
    let start = bytes.iter().take_while(is_space).count();
    let end = bytes.len() - bytes[start..].iter().rev().take_while(is_space).count();
    let digits = &bytes[start..end];
    if digits.is_empty() {
        return Err("key_missing");
    }
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    let text = std::str::from_utf8(digits).map_err(|_| "key_not_hex")?;
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
    number.map(u128::to_be_bytes).ok_or("key_not_hex")
}

/// UTF-8 of 1 to `most` bytes without control characters.
fn plain(column: Option<Vec<u8>>, most: usize) -> Option<String> {
    let text = String::from_utf8(column?).ok()?;
    let is_plain = !text.is_empty() && text.len() <= most && !text.chars().any(char::is_control);
    is_plain.then_some(text)
}

/// A name of a database holds no password, so that it may be shown.
fn source(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(source) = text.parse::<Source>() else { return };
    let kind = text.split(':').next().unwrap_or_default();
    assert!(kind == source.kind() || (kind == "postgresql" && source.kind() == "postgres"), "{text:?}");
    let has_password =
        ["password=", "pwd=", "passwd=", "secret="].iter().any(|word| text.to_lowercase().contains(word));
    assert!(!has_password || kind == "sqlite", "{text:?}");
    // What would connect is not opened: only the text is read.
    let _ = format!("{source:?}");
}
