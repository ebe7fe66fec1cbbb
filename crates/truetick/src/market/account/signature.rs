//! What the venues' signatures are made of.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::json;
use sha2::{Digest as _, Sha256, Sha512};

/// How long a token of ours is good, in seconds, as Coinbase wants it.
const TOKEN_S: u64 = 120;

/// HMAC-SHA256 of `text` by the letters of `secret`, in hex (Bybit, Binance).
pub(super) fn hex(secret: &str, text: &str) -> Result<String> {
    Ok(sha256(secret.as_bytes(), text)?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The same in base64 (OKX).
pub(super) fn base64(secret: &str, text: &str) -> Result<String> {
    Ok(STANDARD.encode(sha256(secret.as_bytes(), text)?))
}

/// The same by a secret that is base64 itself (Coinbase Exchange).
pub(super) fn base64_of_base64(secret: &str, text: &str) -> Result<String> {
    Ok(STANDARD.encode(sha256(&decoded(secret)?, text)?))
}

/// HMAC-SHA512 of `path` and the SHA-256 of `nonce` and `body`, by a secret in base64 (Kraken's `API-Sign`).
pub(super) fn kraken(secret: &str, path: &str, nonce: &str, body: &str) -> Result<String> {
    let mut mac = Hmac::<Sha512>::new_from_slice(&decoded(secret)?).context("the secret is no key")?;
    mac.update(path.as_bytes());
    mac.update(&Sha256::new().chain_update(nonce).chain_update(body).finalize());
    Ok(STANDARD.encode(mac.finalize().into_bytes()))
}

/// A JSON Web Token of `key` by ECDSA over P-256, from `now_s` on (Coinbase Advanced).
pub(super) fn token(key: &str, secret_pem: &str, nonce: &str, now_s: u64) -> Result<String> {
    let secret = p256::SecretKey::from_sec1_pem(secret_pem).context("the secret is no EC PRIVATE KEY in PEM")?;
    let header = json!({"alg": "ES256", "kid": key, "nonce": nonce, "typ": "JWT"});
    let claims = json!({"iss": "cdp", "sub": key, "nbf": now_s, "exp": now_s + TOKEN_S});
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let signature: Signature = SigningKey::from(secret).sign(signed.as_bytes());
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes())))
}

fn sha256(secret: &[u8], text: &str) -> Result<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).context("the secret is no key")?;
    mac.update(text.as_bytes());
    Ok(mac.finalize().into_bytes().to_vec())
}

fn decoded(secret: &str) -> Result<Vec<u8>> {
    // The library's error would show a letter of it.
    STANDARD.decode(secret.trim()).ok().context("the secret is not base64")
}

#[cfg(test)]
mod tests {
    use p256::ecdsa::signature::Verifier as _;

    use super::*;

    /// developers.binance.com, "Signed endpoint security": the example of HMAC keys.
    #[test]
    fn binances_example() {
        let secret = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j";
        let text = "symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559";
        assert_eq!(hex(secret, text).unwrap(), "c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71");
    }

    /// docs.kraken.com, "Spot REST authentication": the example.
    #[test]
    fn krakens_example() {
        let secret = "kQH5HW/8p1uGOVjbgWA7FunAmGO8lsSUXNsu3eow76sz84Q18fWxnyRzBHCd3pd5nE9qa99HAZtuZuj6F1huXg==";
        let body = "nonce=1616492376594&ordertype=limit&pair=XBTUSD&price=37500&type=buy&volume=1.25";
        let signed = kraken(secret, "/0/private/AddOrder", "1616492376594", body).unwrap();
        assert_eq!(signed, "4/dpxb3iT4tp/ZCVEwSnEsLxx0bqyhLpdfOpc6fn7OR8+UClSV5n9E6aSS8MPtnRfp32bAb0nmbRn6H8ndwLUQ==");
    }

    /// By Python's `hmac` and `base64`.
    #[test]
    fn the_others_are_as_another_implementation_makes_them() {
        let of_bybit = hex("s3cret", "GET/realtime1700000010000").unwrap();
        assert_eq!(of_bybit, "7428a4a22694ad4a65b2a6fe8d983e3e5ba96cd658faab065bef9154f41f6589");
        let of_okx = base64("s3cret", "1700000000GET/users/self/verify").unwrap();
        assert_eq!(of_okx, "6m3c4Z85hxw7Mb6Fn6QGVsQdNy49nlKRkZFIx9/dmBE=");
        let of_coinbase = base64_of_base64("czNjcmV0", "1700000000GET/users/self/verify").unwrap();
        assert_eq!(of_coinbase, of_okx, "the same secret");
        assert!(base64_of_base64("s3cret!", "").is_err());
    }

    #[test]
    fn a_token_can_be_verified_by_its_public_key() {
        use p256::elliptic_curve::sec1::ToEncodedPoint as _;
        let secret = p256::SecretKey::from_slice(&[7; 32]).unwrap();
        let pem = secret.to_sec1_pem(p256::pkcs8::LineEnding::LF).unwrap();
        let token = token("organizations/o/apiKeys/k", &pem, "00ff", 1_700_000_000).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let point = secret.public_key().to_encoded_point(false);
        let public = p256::ecdsa::VerifyingKey::from_encoded_point(&point).unwrap();
        let signature = Signature::from_slice(&URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        public.verify(signed.as_bytes(), &signature).unwrap();
        let parts: Vec<serde_json::Value> = signed
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!((&parts[0]["alg"], &parts[0]["kid"]), (&json!("ES256"), &json!("organizations/o/apiKeys/k")));
        assert_eq!((&parts[1]["iss"], &parts[1]["exp"]), (&json!("cdp"), &json!(1_700_000_120)));
    }
}
