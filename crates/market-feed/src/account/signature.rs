//! Signatures and tokens that venues describe as data.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use ring::{digest, hmac};
use serde_json::json;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use tt_venue::rules::{Hash, KeyEncoding, Signature, SignatureEncoding, SignedText};
use zeroize::Zeroizing;

use crate::credentials::Credentials;

/// Signs by `rule` with an account's `secret`; `fill` fills the places of a text.
pub(super) fn sign(rule: &Signature, secret: &str, time: &str, fill: impl Fn(&str) -> String) -> Result<String> {
    let key = match rule.key {
        KeyEncoding::Bytes => Zeroizing::new(secret.as_bytes().to_vec()),
        KeyEncoding::Base64 => Zeroizing::new(decoded(secret)?),
    };
    let text = match rule.text {
        SignedText::Text(text) => fill(text).into_bytes(),
        SignedText::PathAndDigest { path, body } => {
            let digest = digest::digest(&digest::SHA256, format!("{time}{}", fill(body)).as_bytes());
            [path.as_bytes(), digest.as_ref()].concat()
        }
    };
    let algorithm = match rule.hash {
        Hash::Sha256 => hmac::HMAC_SHA256,
        Hash::Sha512 => hmac::HMAC_SHA512,
    };
    let signature = hmac::sign(&hmac::Key::new(algorithm, &key), &text);
    Ok(match rule.encoding {
        SignatureEncoding::Hex => signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
        SignatureEncoding::Base64 => STANDARD.encode(signature),
    })
}

/// Whether a secret is a private key in PEM (PKCS #8), encrypted or not.
pub(super) fn is_private_key(secret: &str) -> bool {
    let first = secret.trim_start().lines().next().unwrap_or_default();
    matches!(first.trim_end(), "-----BEGIN PRIVATE KEY-----" | "-----BEGIN ENCRYPTED PRIVATE KEY-----")
}

/// Signs `text` with an Ed25519 key in PEM; the signature is base64.
///
/// # Errors
/// The secret is another key, or encrypted.
pub(super) fn sign_with_key_pair(secret: &str, text: &str) -> Result<String> {
    // The libraries' errors could show a part of it.
    let der = PrivatePkcs8KeyDer::from_pem_slice(secret.as_bytes()).ok();
    // OpenSSL writes the version of RFC 8410 without the public key.
    let pair = der.and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()).ok());
    let pair = pair.context("the secret is no Ed25519 key in PEM (PKCS #8, not encrypted)")?;
    Ok(STANDARD.encode(pair.sign(text.as_bytes())))
}

/// When a token is valid.
#[derive(Clone, Copy)]
pub(super) struct Validity {
    /// From this second of the Unix epoch on.
    pub(super) from_s: u64,
    /// For so many seconds.
    pub(super) lifetime_s: u64,
}

/// A JSON Web Token of an account, signed by ECDSA over P-256 (ES256, RFC 7518 section 3.4).
///
/// # Errors
/// The secret is no key as [`key_of_p256`] reads it.
pub(super) fn json_web_token(issuer: &str, account: &Credentials, nonce: &str, validity: Validity) -> Result<String> {
    let random = SystemRandom::new();
    let key = account.key.as_str();
    let pair = key_of_p256(&account.secret, &random).context("the secret is no EC PRIVATE KEY of P-256 in PEM")?;
    let Validity { from_s, lifetime_s } = validity;
    let header = json!({"alg": "ES256", "kid": key, "nonce": nonce, "typ": "JWT"});
    let claims = json!({"iss": issuer, "sub": key, "nbf": from_s, "exp": from_s + lifetime_s});
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let signature = pair.sign(&random, signed.as_bytes()).ok().context("the system has no random number")?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// The start of a key of P-256 in PKCS #8 (RFC 5958, RFC 5480): version, algorithm and curve.
const PKCS8_OF_P256: [u8; 24] =
    *b"\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";

/// Reads a key in PEM as OpenSSL writes it and venues give it: an ECPrivateKey with its public key (RFC 5915). The
/// libraries' errors could show a part of it.
fn key_of_p256(secret: &str, random: &SystemRandom) -> Option<EcdsaKeyPair> {
    let sec1 = PrivateSec1KeyDer::from_pem_slice(secret.as_bytes()).ok()?;
    let sec1 = sec1.secret_sec1_der();
    // ring reads PKCS #8, which has the key in an octet string. Lengths from 128 to 255 have one byte more.
    let len = u8::try_from(sec1.len()).ok().filter(|len| *len < 128)?;
    let all = u8::try_from(PKCS8_OF_P256.len() + 2 + sec1.len()).ok().filter(|len| *len >= 128)?;
    let pkcs8 = Zeroizing::new([&[0x30, 0x81, all], &PKCS8_OF_P256[..], &[0x04, len], sec1].concat());
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8, random).ok()
}

fn decoded(secret: &str) -> Result<Vec<u8>> {
    // The library's error would show a letter of it.
    STANDARD.decode(secret.trim()).ok().context("the secret is not base64")
}

#[cfg(test)]
mod key_pair_tests {
    use super::*;

    /// The PEM text of an Ed25519 key, as OpenSSL writes it (RFC 8410 section 7).
    fn pem(seed: &str) -> String {
        let seed = (0..seed.len()).step_by(2).map(|index| u8::from_str_radix(&seed[index..index + 2], 16).unwrap());
        let der: Vec<u8> =
            b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".iter().copied().chain(seed).collect();
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
    }

    fn signed_in_hex(seed: &str, text: &str) -> String {
        let signature = STANDARD.decode(sign_with_key_pair(&pem(seed), text).unwrap()).unwrap();
        signature.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 8032 section 7.1, tests 1 and 2.
    #[test]
    fn signs_the_examples_of_the_rfc() {
        assert_eq!(
            signed_in_hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", ""),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        );
        assert_eq!(
            signed_in_hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "r"),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        );
    }

    /// Binance's documentation (fix-api.md, "How to sign Logon request"): key, text and signature.
    #[test]
    fn signs_the_example_of_binance_with_its_key() {
        let key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u\n-----END PRIVATE KEY-----";
        let text = "A\x01EXAMPLE\x01SPOT\x011\x0120240627-11:17:25.223";
        let expected = "4MHXelVVcpkdwuLbl6n73HQUXUf1dse2PCgT1DYqW9w8AVZ1RACFGM+5UdlGPrQHrgtS3CvsRURC1oj73j8gCA==";
        for key in [key.to_owned(), key.replace('\n', "\r\n"), format!("\n{key}\n")] {
            assert!(is_private_key(&key));
            assert_eq!(sign_with_key_pair(&key, text).unwrap(), expected);
        }
    }

    #[test]
    fn another_secret_is_no_key_and_nothing_of_it_is_shown() {
        for secret in ["NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP", "", "-----BEGIN EC PRIVATE KEY-----\nAAAA"] {
            assert!(!is_private_key(secret));
        }
        // By `openssl genpkey -algorithm X25519`: a key of the same form for something else.
        let of_x25519 = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VuBCIEIDBnGUTRDdWZGw0MG+ORFQueq71QvEggEvhBm8VAJjR6\n-----END PRIVATE KEY-----\n";
        let encrypted = of_x25519.replace("PRIVATE", "ENCRYPTED PRIVATE");
        for secret in [of_x25519, &encrypted, "-----BEGIN PRIVATE KEY-----\nMC4C"] {
            assert!(is_private_key(secret));
            let error = format!("{:#}", sign_with_key_pair(secret, "text").unwrap_err());
            assert!(error.contains("no Ed25519 key in PEM") && !error.contains("MC4C"), "{error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use p256::ecdsa::signature::Verifier as _;
    use tt_venue::Venue;
    use tt_venue::rules::TokenSource;

    use super::*;

    /// The signature of `text` by the rule of a venue, whose own text is replaced.
    fn signed(venue: Venue, secret: &str, time: &str, text: &str) -> Result<String> {
        let rule = venue.rules().account.unwrap().signature.unwrap();
        sign(&rule, secret, time, |_| text.to_owned())
    }

    /// developers.binance.com, "Signed endpoint security": the example of HMAC keys.
    #[test]
    fn signs_the_example_of_binance() {
        let secret = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j";
        let text = "symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559";
        let expected = "c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71";
        assert_eq!(signed(Venue::BinanceSpot, secret, "", text).unwrap(), expected);
    }

    /// docs.kraken.com, "Spot REST authentication": the example, with its path.
    #[test]
    fn signs_the_example_of_kraken() {
        let secret = "kQH5HW/8p1uGOVjbgWA7FunAmGO8lsSUXNsu3eow76sz84Q18fWxnyRzBHCd3pd5nE9qa99HAZtuZuj6F1huXg==";
        let body = "nonce=1616492376594&ordertype=limit&pair=XBTUSD&price=37500&type=buy&volume=1.25";
        let rule = Venue::Kraken.rules().account.unwrap().signature.unwrap();
        let rule = Signature { text: SignedText::PathAndDigest { path: "/0/private/AddOrder", body }, ..rule };
        let signed = sign(&rule, secret, "1616492376594", str::to_owned).unwrap();
        assert_eq!(signed, "4/dpxb3iT4tp/ZCVEwSnEsLxx0bqyhLpdfOpc6fn7OR8+UClSV5n9E6aSS8MPtnRfp32bAb0nmbRn6H8ndwLUQ==");
    }

    /// By Python's `hmac` and `base64`.
    #[test]
    fn signs_as_another_implementation() {
        let fill = |time: &'static str| move |text: &str| text.replace("{time}", time);
        let sign = |venue: Venue, secret: &str, time: &'static str| {
            sign(&venue.rules().account.unwrap().signature.unwrap(), secret, time, fill(time))
        };
        let of_bybit = sign(Venue::BybitLinear, "s3cret", "1700000010000").unwrap();
        assert_eq!(of_bybit, "7428a4a22694ad4a65b2a6fe8d983e3e5ba96cd658faab065bef9154f41f6589");
        let of_okx = sign(Venue::Okx, "s3cret", "1700000000").unwrap();
        assert_eq!(of_okx, "6m3c4Z85hxw7Mb6Fn6QGVsQdNy49nlKRkZFIx9/dmBE=");
        let of_coinbase = sign(Venue::CoinbaseExchange, "czNjcmV0", "1700000000").unwrap();
        assert_eq!(of_coinbase, of_okx, "the same secret");
        assert!(sign(Venue::CoinbaseExchange, "s3cret!", "1700000000").is_err());
    }

    #[test]
    fn a_token_can_be_verified_by_its_public_key() {
        use p256::elliptic_curve::sec1::ToEncodedPoint as _;
        let secret = p256::SecretKey::from_slice(&[7; 32]).unwrap();
        let pem = secret.to_sec1_pem(p256::pkcs8::LineEnding::LF).unwrap();
        let (secret_text, passphrase) = (Zeroizing::new(pem.to_string()), Zeroizing::default());
        let account = Credentials { key: "organizations/o/apiKeys/k".to_owned(), secret: secret_text, passphrase };
        let Some(TokenSource::Jwt { issuer, lifetime_s }) = Venue::CoinbaseAdvanced.rules().account.unwrap().token
        else {
            panic!("another source");
        };
        let validity = Validity { from_s: 1_700_000_000, lifetime_s };
        let token = json_web_token(issuer, &account, "00ff", validity).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let point = secret.public_key().to_encoded_point(false);
        let public = p256::ecdsa::VerifyingKey::from_encoded_point(&point).unwrap();
        let signature = p256::ecdsa::Signature::from_slice(&URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        public.verify(signed.as_bytes(), &signature).unwrap();
        let parts: Vec<serde_json::Value> = signed
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!((&parts[0]["alg"], &parts[0]["kid"]), (&json!("ES256"), &json!("organizations/o/apiKeys/k")));
        assert_eq!((&parts[1]["iss"], &parts[1]["exp"]), (&json!("cdp"), &json!(1_700_000_120)));
    }

    #[test]
    fn a_token_needs_a_key_of_its_curve_and_nothing_of_another_is_shown() {
        // By `openssl ecparam -name secp256k1 -genkey` and `openssl ecparam -name prime256v1 -genkey`.
        let of_another_curve = "-----BEGIN EC PRIVATE KEY-----\nMHQCAQEEIMa/JBaJ5lF2IJsrm17nkBJMEZwEAIjvvJATtzQ61VljoAcGBSuBBAAK\noUQDQgAE+OL82uRumrIpebbmIBl689pJZ50u6sLf2mHbF96i+kmuTENR5wHxMX98\nOKg520rmChqMnL+H4fDsItG++IfuqQ==\n-----END EC PRIVATE KEY-----\n";
        let right = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIFzLo0H1Y2sGLJch/hGGMwL1lJvSFj8l/J9htkFYrR3KoAoGCCqGSM49\nAwEHoUQDQgAEbbnE/+9XpFQ8WuqPGkYxY7nfWlXmzXsj39F4JQShm48jXAVPJ2wq\nOAJl9MH48ZYKBXNOnPPr2kQk1pO72xdHSw==\n-----END EC PRIVATE KEY-----\n";
        let token = |pem: &str| {
            let (key, secret) = ("k".to_owned(), Zeroizing::new(pem.to_owned()));
            let account = Credentials { key, secret, passphrase: Zeroizing::default() };
            json_web_token("cdp", &account, "00ff", Validity { from_s: 1_700_000_000, lifetime_s: 120 })
        };
        assert!(token(right).is_ok() && token(&right.replace('\n', "\r\n")).is_ok());
        for secret in [of_another_curve, "", "s3cret", &right.replace("EC PRIVATE", "PRIVATE"), &right[..80]] {
            let error = format!("{:#}", token(secret).unwrap_err());
            assert_eq!(error, "the secret is no EC PRIVATE KEY of P-256 in PEM");
        }
    }
}
