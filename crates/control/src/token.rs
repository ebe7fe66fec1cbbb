//! The API token.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// The token that requests for single allocations must carry. It has no `Debug`.
pub struct ApiToken(Zeroizing<String>);

impl ApiToken {
    /// Takes the token's text.
    #[must_use]
    pub const fn new(text: Zeroizing<String>) -> Self {
        Self(text)
    }

    /// Returns whether `headers` carry this token as a bearer token. Compares in constant time.
    pub(crate) fn matches_bearer(&self, headers: &HeaderMap) -> bool {
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        bearer.is_some_and(|bearer| bool::from(bearer.as_bytes().ct_eq(self.0.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const TOKEN: &str = "a-Token.of_29-characters/long";

    fn accepts(authorization: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(authorization).unwrap());
        ApiToken::new(Zeroizing::new(TOKEN.to_owned())).matches_bearer(&headers)
    }

    #[test]
    fn accepts_the_whole_token_only() {
        assert!(accepts(&format!("Bearer {TOKEN}")));
        for length in 0..TOKEN.len() {
            assert!(!accepts(&format!("Bearer {}", &TOKEN[..length])), "prefix of {length}");
            assert!(!accepts(&format!("Bearer {}", &TOKEN[TOKEN.len() - length..])), "suffix of {length}");
            let mut changed = TOKEN.as_bytes().to_vec();
            changed[length] ^= 1;
            assert!(!accepts(&format!("Bearer {}", String::from_utf8(changed).unwrap())), "byte {length} changed");
        }
        for wrong in
            [format!("Bearer {TOKEN}x"), format!("Bearer  {TOKEN}"), format!("bearer {TOKEN}"), TOKEN.to_owned()]
        {
            assert!(!accepts(&wrong), "{wrong}");
        }
        assert!(!ApiToken::new(Zeroizing::new(TOKEN.to_owned())).matches_bearer(&HeaderMap::new()));
    }
}
