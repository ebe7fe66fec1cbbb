//! The account of the demonstration: its key, and whether a client proves that it has the secret.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use ring::signature::{ED25519, UnparsedPublicKey};
use sha2::{Digest as _, Sha256, Sha512};

/// The name of its key at every venue.
pub const API_KEY: &str = "sim-key";

/// Its secret: base64, so that venues that decode theirs can have it, too.
pub const API_SECRET: &str = "c2VjcmV0IG9mIHRoZSBzaW11bGF0b3I=";

/// The name of its Ed25519 key, where the venue takes one. Of such a key the venue has the public half only.
pub const API_KEY_ED25519: &str = "sim-key-ed25519";

/// That key, which is the example of Binance's documentation (fix-api.md, "How to sign Logon request").
pub const API_PRIVATE_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u
-----END PRIVATE KEY-----
";

/// Its public half, by `openssl pkey -pubout`.
const PUBLIC_KEY: [u8; 32] = [
    0x19, 0x42, 0x0a, 0xbf, 0xd7, 0x52, 0xa5, 0x65, 0xc1, 0x56, 0x25, 0xe9, 0xda, 0x6e, 0xaf, 0x00, 0x86, 0xfc, 0x40,
    0xc1, 0x49, 0x60, 0x18, 0x32, 0x14, 0x44, 0x2c, 0x14, 0x99, 0x6a, 0x80, 0x0d,
];

/// Its passphrase, where the venue wants one.
pub const PASSPHRASE: &str = "sim passphrase";

/// Kraken's response to a signed request.
pub(crate) const TOKEN: &str = "1Dwc4lzSwNWOAwkMdqhssNNFhs1ed606d1WcF3XfEMw";

/// Whether `signature` is the HMAC-SHA256 of `text` in hex.
pub(crate) fn is_signed_in_hex(text: &str, signature: &str) -> bool {
    let expected: String = sha256(text).iter().map(|byte| format!("{byte:02x}")).collect();
    expected == signature
}

/// Whether `signature` is the HMAC-SHA256 of `text` in base64.
pub(crate) fn is_signed_in_base64(text: &str, signature: &str) -> bool {
    STANDARD.encode(sha256(text)) == signature
}

/// Whether `signature` is that of `text` in base64 by the account's Ed25519 key.
pub(crate) fn is_signed_by_key_pair(text: &str, signature: &str) -> bool {
    let Ok(signature) = STANDARD.decode(signature) else { return false };
    UnparsedPublicKey::new(&ED25519, PUBLIC_KEY).verify(text.as_bytes(), &signature).is_ok()
}

/// Whether `signature` is Kraken's for a POST of `body` to `path`.
pub(crate) fn is_signed_for_kraken(path: &str, body: &str, signature: &str) -> bool {
    let nonce = body.split('&').find_map(|pair| pair.strip_prefix("nonce=")).unwrap_or_default();
    let Ok(secret) = STANDARD.decode(API_SECRET) else { return false };
    let Ok(mut mac) = Hmac::<Sha512>::new_from_slice(&secret) else { return false };
    mac.update(path.as_bytes());
    mac.update(&Sha256::digest(format!("{nonce}{body}")));
    STANDARD.encode(mac.finalize().into_bytes()) == signature
}

fn sha256(text: &str) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(API_SECRET.as_bytes()) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Binance's documentation (fix-api.md, "How to sign Logon request").
    #[test]
    fn the_signature_of_the_documentation_is_its_key_pairs() {
        let text = "A\x01EXAMPLE\x01SPOT\x011\x0120240627-11:17:25.223";
        let signature = "4MHXelVVcpkdwuLbl6n73HQUXUf1dse2PCgT1DYqW9w8AVZ1RACFGM+5UdlGPrQHrgtS3CvsRURC1oj73j8gCA==";
        assert!(is_signed_by_key_pair(text, signature));
        assert!(!is_signed_by_key_pair(&text.replace("EXAMPLE", "EXAMPLF"), signature));
        assert!(!is_signed_by_key_pair(text, &signature.replace("4MHX", "4MHY")));
        assert!(!is_signed_by_key_pair(text, "no base64") && !is_signed_by_key_pair(text, ""));
    }

    /// By Python's `hmac`, `hashlib` and `base64`.
    #[test]
    fn signatures_are_those_of_another_implementation() {
        assert!(is_signed_in_hex(
            "GET/realtime1700000010000",
            "0758bf5677fb94e46c24318d6e984c42ae447b62cbb17cf6ac1f8be89024b5bf"
        ));
        assert!(!is_signed_in_hex(
            "GET/realtime1700000010001",
            "0758bf5677fb94e46c24318d6e984c42ae447b62cbb17cf6ac1f8be89024b5bf"
        ));
        assert!(is_signed_in_base64("1700000000GET/users/self/verify", "AfS64TSV6QM9i7VcB44BEKV/TM4SJALDSY3TPx1mg+o="));
        let (path, body) = ("/0/private/GetWebSocketsToken", "nonce=1700000000000");
        assert!(is_signed_for_kraken(
            path,
            body,
            "d8C/vBbWi2lwZ85DwsyNSp9A+zfjopYqmEl8MRYXXM6LlLcFIvrmKqQbXJxZI9D1YJyV/CIdFnk+Q9mcsALTzw=="
        ));
        assert!(!is_signed_for_kraken(
            path,
            "nonce=1700000000001",
            "d8C/vBbWi2lwZ85DwsyNSp9A+zfjopYqmEl8MRYXXM6LlLcFIvrmKqQbXJxZI9D1YJyV/CIdFnk+Q9mcsALTzw=="
        ));
    }
}
