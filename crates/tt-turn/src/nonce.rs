//! Nonces that need no memory (RFC 8489 sections 9.2 and 14.10, RFC 8656 section 5).
//!
//! A nonce contains its time of issue and a keyed hash of that time and the client's address and port. Without the key
//! it cannot be forged, and it is not valid for another address.

use core::net::SocketAddr;

use sha2::block_api::compress256;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::base64;
use crate::flow::{bits_v6, canonical};

/// Length of a nonce: the nonce cookie, three characters for the time of issue, twelve for the code.
///
/// It is short, so that a 401 to a request of 28 bytes (REQUESTED-TRANSPORT alone) has at most three times its bytes.
pub(crate) const NONCE_LEN: usize = COOKIE_LEN + TIME_LEN + CODE_LEN;
/// Start of the nonce cookie (RFC 8489 section 9.2); four characters of security features follow.
const COOKIE_START: &[u8; 9] = b"obMatJos2";
const COOKIE_LEN: usize = COOKIE_START.len() + 4;
/// RFC 8489 section 18.1: bit 0 of 24, as RFC 8656's examples write it: the first bit of the first character.
const PASSWORD_ALGORITHMS: u32 = 1 << 5;
/// Bit 1: USERHASH is supported.
const USERNAME_ANONYMITY: u32 = 1 << 4;
/// 18 bits of the time of issue, which repeat every three days. The code covers the whole time.
const TIME_LEN: usize = 3;
const TIME_MASK: u64 = (1 << (6 * TIME_LEN)) - 1;
/// 72 bits.
const CODE_LEN: usize = 12;
/// Tolerated difference between the clocks of a fleet, in seconds.
const AHEAD_MAX_S: u64 = 5;
const INITIAL: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// A nonce's characters.
pub(crate) type Nonce = [u8; NONCE_LEN];
type Cookie = [u8; COOKIE_LEN];

/// Features that a server offers. They are part of the nonce, so that an attacker on the path cannot remove the offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SecurityFeatures {
    /// PASSWORD-ALGORITHMS is offered.
    pub(crate) password_algorithms: bool,
    /// USERHASH is supported.
    pub(crate) username_anonymity: bool,
}

impl SecurityFeatures {
    fn cookie(self) -> Cookie {
        let algorithms = if self.password_algorithms { PASSWORD_ALGORITHMS } else { 0 };
        let anonymity = if self.username_anonymity { USERNAME_ANONYMITY } else { 0 };
        let mut cookie = *b"obMatJos2AAAA";
        cookie[COOKIE_START.len()] = base64::digit(algorithms | anonymity);
        cookie
    }
}

/// Returns whether a nonce starts with a cookie that offers PASSWORD-ALGORITHMS. The nonce may be forged.
#[inline]
pub(crate) fn offers_algorithms(nonce: &[u8]) -> bool {
    let features = nonce.strip_prefix(COOKIE_START).filter(|rest| rest.len() >= 4).and_then(<[u8]>::first);
    features.and_then(|digit| base64::value(*digit)).is_some_and(|bits| bits & PASSWORD_ALGORITHMS != 0)
}

/// A key of the hash: the state of SHA-256 after the block that contains it.
#[derive(Clone)]
struct NonceKey([u32; 8]);

impl NonceKey {
    fn new(key: &[u8; 32]) -> Self {
        let mut block = [0; 64];
        block[..32].copy_from_slice(key);
        let mut state = INITIAL;
        compress256(&mut state, &[block]);
        block.zeroize();
        Self(state)
    }

    /// Returns the nonce of a client at a second. The hashed text has a fixed length of one block, so that no text is
    /// a prefix of another.
    #[inline]
    fn nonce(&self, issued_s: u64, client: SocketAddr, cookie: &Cookie) -> Nonce {
        let client = canonical(client);
        let mut block = [0; 64];
        block[..8].copy_from_slice(&issued_s.to_be_bytes());
        block[8..24].copy_from_slice(&bits_v6(client.ip()).to_be_bytes());
        block[24..26].copy_from_slice(&client.port().to_be_bytes());
        block[26..39].copy_from_slice(cookie);
        block[39] = 0x80;
        let bits: u64 = 8 * (64 + 39);
        block[56..].copy_from_slice(&bits.to_be_bytes());
        let mut state = self.0;
        compress256(&mut state, &[block]);

        let mut nonce = [0; NONCE_LEN];
        nonce[..13].copy_from_slice(cookie);
        for (place, digit) in nonce[13..13 + TIME_LEN].iter_mut().enumerate() {
            *digit = base64::digit((issued_s >> (6 * (TIME_LEN - 1 - place))) as u32);
        }
        let mut code = [0; 12];
        for (space, word) in code.as_chunks_mut::<4>().0.iter_mut().zip(state) {
            *space = word.to_be_bytes();
        }
        let digits = nonce[13 + TIME_LEN..].as_chunks_mut::<4>().0;
        for (space, [a, b, c]) in digits.iter_mut().zip(code.as_chunks::<3>().0) {
            *space = base64::group(*a, *b, *c);
        }
        nonce
    }
}

impl Drop for NonceKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Issues and checks nonces.
pub(crate) struct Nonces {
    current: NonceKey,
    previous: Option<NonceKey>,
    cookie: Cookie,
    lifetime_s: u64,
    /// Number of the keys and features: a proof counts for its own alone.
    generation: u64,
}

/// A nonce whose code was right, for the one client whose requests are checked with it.
///
/// While the client uses the same nonce, its code needs no hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NonceProof {
    nonce: Nonce,
    issued_s: u64,
    generation: u64,
}

/// Result of [`Nonces::check`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum NonceCheck {
    /// It is stale, forged or another client's.
    Stale,
    /// It is that of the proof.
    Proven,
    /// It is fresh, and this is its proof.
    Fresh(NonceProof),
}

impl core::fmt::Debug for Nonces {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Nonces").field("lifetime_s", &self.lifetime_s).finish_non_exhaustive()
    }
}

impl Nonces {
    /// Creates nonces that live for `lifetime_s` seconds. Accepts those of `current` and `previous` with the same
    /// `features`.
    pub(crate) fn new(
        current: &[u8; 32],
        previous: Option<&[u8; 32]>,
        lifetime_s: u32,
        features: SecurityFeatures,
    ) -> Self {
        Self {
            current: NonceKey::new(current),
            previous: previous.map(NonceKey::new),
            cookie: features.cookie(),
            lifetime_s: u64::from(lifetime_s),
            generation: 0,
        }
    }

    /// Takes the keys and features of `after`; proofs of those before no longer count.
    pub(crate) fn replace(&mut self, after: Self) {
        *self = Self { generation: self.generation + 1, ..after };
    }

    /// Returns a nonce for `client`.
    #[inline]
    pub(crate) fn issue(&self, unix_s: u64, client: SocketAddr) -> Nonce {
        self.current.nonce(unix_s, client, &self.cookie)
    }

    /// Returns whether `nonce` was issued to `client` with one of the keys and is not stale.
    #[inline]
    pub(crate) fn is_fresh(&self, nonce: &[u8], unix_s: u64, client: SocketAddr) -> bool {
        self.unproven(nonce, unix_s).is_some_and(|(nonce, issued_s)| self.is_made_for(client, nonce, issued_s))
    }

    /// Checks `nonce` as [`Nonces::is_fresh`] does. `proof` must be one of an earlier check for the same client.
    #[inline]
    pub(crate) fn check(
        &self,
        nonce: &[u8],
        unix_s: u64,
        client: SocketAddr,
        proof: Option<&NonceProof>,
    ) -> NonceCheck {
        let Some((nonce, issued_s)) = self.unproven(nonce, unix_s) else { return NonceCheck::Stale };
        let proves = |proof: &NonceProof| {
            (proof.generation, proof.issued_s) == (self.generation, issued_s) && same(&proof.nonce, nonce)
        };
        if proof.is_some_and(proves) {
            NonceCheck::Proven
        } else if self.is_made_for(client, nonce, issued_s) {
            NonceCheck::Fresh(NonceProof { nonce: *nonce, issued_s, generation: self.generation })
        } else {
            NonceCheck::Stale
        }
    }

    /// Returns the proof of a nonce that [`Nonces::is_fresh`] has just accepted.
    pub(crate) fn proof(&self, nonce: &[u8], unix_s: u64) -> Option<NonceProof> {
        let (nonce, issued_s) = self.unproven(nonce, unix_s)?;
        Some(NonceProof { nonce: *nonce, issued_s, generation: self.generation })
    }

    /// Returns a nonce, whose code may be wrong, and its time of issue; `None` for a wrong form and a stale one.
    #[inline]
    fn unproven<'n>(&self, nonce: &'n [u8], unix_s: u64) -> Option<(&'n Nonce, u64)> {
        let nonce = <&Nonce>::try_from(nonce).ok()?;
        let issued_s = issue_time(nonce, unix_s)?;
        (unix_s.saturating_sub(issued_s) < self.lifetime_s).then_some((nonce, issued_s))
    }

    #[inline]
    fn is_made_for(&self, client: SocketAddr, nonce: &Nonce, issued_s: u64) -> bool {
        let made_with = |key: &NonceKey| same(&key.nonce(issued_s, client, &self.cookie), nonce);
        made_with(&self.current) || self.previous.as_ref().is_some_and(made_with)
    }
}

/// Returns the last time before `unix_s`, or little after it, that a nonce can be of, if it has the right form.
#[inline]
fn issue_time(nonce: &Nonce, unix_s: u64) -> Option<u64> {
    let digits = &nonce[COOKIE_LEN..COOKIE_LEN + TIME_LEN];
    let low = digits.iter().try_fold(0, |time, digit| Some(time << 6 | u64::from(base64::value(*digit)?)))?;
    let latest = unix_s.saturating_add(AHEAD_MAX_S);
    latest.checked_sub(latest.wrapping_sub(low) & TIME_MASK)
}

/// Compares two nonces, the code in constant time. The rest is not secret.
#[inline]
fn same(a: &Nonce, b: &Nonce) -> bool {
    let (open_a, code_a) = a.split_at(NONCE_LEN - CODE_LEN);
    let (open_b, code_b) = b.split_at(NONCE_LEN - CODE_LEN);
    let words = |code: &[u8]| {
        let [a, b, c] = [0, 4, 8].map(|at| code[at..].first_chunk::<4>().map_or(0, |word| u32::from_ne_bytes(*word)));
        u128::from(a) | u128::from(b) << 32 | u128::from(c) << 64
    };
    let difference = words(code_a) ^ words(code_b);
    open_a == open_b && bool::from((difference as u64 | (difference >> 64) as u64).ct_eq(&0))
}

#[cfg(test)]
mod tests {
    use super::{NonceCheck, NonceProof, Nonces, SecurityFeatures, offers_algorithms};
    use sha2::{Digest, Sha256};
    use std::net::SocketAddr;
    use std::vec::Vec;

    const KEY: [u8; 32] = [7; 32];

    fn nonces(current: &[u8; 32], previous: Option<&[u8; 32]>) -> Nonces {
        let features = SecurityFeatures { password_algorithms: true, username_anonymity: false };
        Nonces::new(current, previous, 60, features)
    }

    fn client(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn every_byte_of_a_nonce_counts_and_two_changes_do_not_cancel() {
        let (at, now) = (client("192.0.2.1:4000"), 1_700_000_000);
        let nonces = nonces(&KEY, None);
        let nonce = nonces.issue(now, at);
        assert!(nonces.is_fresh(&nonce, now, at));
        for first in 0..nonce.len() {
            for second in first..nonce.len() {
                let mut forged = nonce;
                forged[first] ^= 1;
                assert!(second != first || !nonces.is_fresh(&forged, now, at), "byte {first}");
                forged[second] ^= 1;
                assert_eq!(nonces.is_fresh(&forged, now, at), first == second, "bytes {first} and {second}");
            }
        }
    }

    #[test]
    fn code_is_sha256_of_key_block_and_text() {
        let at = client("192.0.2.1:4000");
        let nonce = nonces(&KEY, None).issue(1_700_000_000, at);
        let mut text = Vec::new();
        text.extend([7; 32]);
        text.extend([0; 32]);
        text.extend(1_700_000_000u64.to_be_bytes());
        text.extend("::ffff:192.0.2.1".parse::<std::net::Ipv6Addr>().expect("an address").octets());
        text.extend(4000u16.to_be_bytes());
        text.extend(b"obMatJos2gAAA");
        let code = Sha256::digest(&text);
        let digits: Vec<u8> = code[..12].chunks(3).flat_map(|c| crate::base64::group(c[0], c[1], c[2])).collect();
        assert_eq!(&nonce[16..], &digits[..12]);
        assert!(nonce.starts_with(b"obMatJos2gAAA"));
    }

    #[test]
    fn stale_at_its_lifetime_and_from_the_future() {
        let ours = nonces(&KEY, None);
        let at = client("[2001:db8::1]:9");
        let nonce = ours.issue(1_000, at);
        assert!(ours.is_fresh(&nonce, 1_000, at) && ours.is_fresh(&nonce, 1_059, at));
        assert!(!ours.is_fresh(&nonce, 1_060, at));
        assert!(ours.is_fresh(&nonce, 995, at) && !ours.is_fresh(&nonce, 994, at));
    }

    fn proof(nonces: &Nonces, nonce: &[u8], unix_s: u64, at: SocketAddr) -> NonceProof {
        match nonces.check(nonce, unix_s, at, None) {
            NonceCheck::Fresh(proof) => proof,
            other @ (NonceCheck::Stale | NonceCheck::Proven) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_proof_counts_for_its_nonce_its_lifetime_and_its_keys_alone() {
        let (at, features) =
            (client("192.0.2.1:4000"), SecurityFeatures { password_algorithms: true, username_anonymity: false });
        let mut ours = nonces(&KEY, None);
        let nonce = ours.issue(1_000, at);
        let proof = proof(&ours, &nonce, 1_000, at);
        let check = |ours: &Nonces, nonce: &[u8], unix_s| ours.check(nonce, unix_s, at, Some(&proof));
        assert!(matches!(check(&ours, &nonce, 1_059), NonceCheck::Proven));
        assert!(matches!(check(&ours, &nonce, 1_060), NonceCheck::Stale));
        // The time in a nonce repeats: the same text is no nonce of three days later.
        assert!(matches!(check(&ours, &nonce, 1_000 + (1 << 18)), NonceCheck::Stale));
        assert!(matches!(check(&ours, &ours.issue(1_001, at), 1_001), NonceCheck::Fresh(_)));
        for place in 0..nonce.len() {
            let mut changed = nonce;
            changed[place] ^= 1;
            assert!(matches!(check(&ours, &changed, 1_000), NonceCheck::Stale), "byte {place}");
        }
        // The same keys again are no reason to trust a proof of before.
        ours.replace(nonces(&KEY, None));
        assert!(matches!(check(&ours, &nonce, 1_000), NonceCheck::Fresh(_)));
        ours.replace(Nonces::new(&[8; 32], None, 60, features));
        assert!(matches!(check(&ours, &nonce, 1_000), NonceCheck::Stale));
    }

    #[test]
    fn previous_key_counts_until_it_is_gone() {
        let at = client("192.0.2.1:4000");
        let nonce = nonces(&KEY, None).issue(10, at);
        assert!(nonces(&[8; 32], Some(&KEY)).is_fresh(&nonce, 10, at));
        assert!(!nonces(&[8; 32], Some(&[9; 32])).is_fresh(&nonce, 10, at));
    }

    #[test]
    fn case_a33_a34_no_other_address_and_no_changed_character() {
        let ours = nonces(&KEY, None);
        let at = client("192.0.2.1:4000");
        let nonce = ours.issue(500, at);
        assert!(!ours.is_fresh(&nonce, 500, client("192.0.2.1:4001")));
        assert!(!ours.is_fresh(&nonce, 500, client("192.0.2.2:4000")));
        for place in 0..nonce.len() {
            for other in 0..=255 {
                let mut changed = nonce;
                changed[place] = other;
                assert_eq!(ours.is_fresh(&changed, 500, at), other == nonce[place], "{place} {other}");
            }
        }
        assert!(!ours.is_fresh(&nonce[..27], 500, at));
    }

    /// The cookies of RFC 8656 section 20's examples.
    #[test]
    fn rfc_r040_r041_r045_r046_the_cookie_contains_the_features() {
        let at = client("192.0.2.1:4000");
        for (password_algorithms, username_anonymity, cookie) in [
            (false, false, "obMatJos2AAAA"),
            (true, false, "obMatJos2gAAA"),
            (false, true, "obMatJos2QAAA"),
            (true, true, "obMatJos2wAAA"),
        ] {
            let features = SecurityFeatures { password_algorithms, username_anonymity };
            let nonce = Nonces::new(&KEY, None, 60, features).issue(500, at);
            assert!(nonce.starts_with(cookie.as_bytes()), "{features:?}");
            assert_eq!(offers_algorithms(&nonce), password_algorithms);
            // Whoever offers something else has not made it.
            assert_eq!(nonces(&KEY, None).is_fresh(&nonce, 500, at), password_algorithms && !username_anonymity);
        }
        for other in ["obMatJos2", "obMatJos2gAA", "obMatJos3gAAA", "", "obMatJos2=AAA", "gAAA"] {
            assert!(!offers_algorithms(other.as_bytes()), "{other}");
        }
    }
}
