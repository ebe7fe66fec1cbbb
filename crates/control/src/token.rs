//! The API token.

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::answer::rejected;

/// The token that requests for single allocations and for control of the gate must carry. It has no `Debug`.
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

/// Checks that a request carries the API token; returns the response to one that does not.
pub(crate) fn authorize(token: Option<&ApiToken>, headers: &HeaderMap) -> Result<(), Box<Response>> {
    match token {
        None => {
            let error =
                "no API token is configured (--api-token-file, or api_token_file in [http]): this request needs one";
            Err(Box::new(rejected(StatusCode::FORBIDDEN, error)))
        }
        Some(token) if token.matches_bearer(headers) => Ok(()),
        Some(_) => {
            let error = "the request needs the header `Authorization: Bearer TOKEN` with the configured API token";
            let rejection = rejected(StatusCode::UNAUTHORIZED, error);
            Err(Box::new(([(WWW_AUTHENTICATE, "Bearer")], rejection).into_response()))
        }
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
