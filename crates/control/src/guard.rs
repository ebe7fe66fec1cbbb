//! Checks of every request against other sites in the user's browser, and headers of every response.

use std::net::IpAddr;

use axum::Json;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Headers of every answer. Nothing is cached, framed, sniffed, or loaded from elsewhere.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (HeaderName::from_static("cache-control"), HeaderValue::from_static("no-store")),
    (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff")),
    (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
];

/// Refuses requests that another site could have caused, and adds the headers to every answer.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let mut response = match check(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(reason) => (StatusCode::FORBIDDEN, Json(json!({ "error": reason }))).into_response(),
    };
    response.headers_mut().extend(HEADERS);
    response
}

/// The answer for a path that does not exist.
pub(crate) async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Json(json!({ "error": "no such path" }))).into_response()
}

/// Whether `headers` are those of a request made to this server by its own page or by a program.
///
/// DNS rebinding needs a name, so `Host` must be an address or `localhost`; the port is free, so that a tunnel works.
/// A WebSocket is not bound by the same-origin policy, so an `Origin` must be the server's own.
fn check(headers: &HeaderMap, uri: &Uri) -> Result<(), &'static str> {
    let host = match headers.get(HOST) {
        Some(host) => host.to_str().map_err(|_| "Host is not text")?,
        None => uri.authority().ok_or("no Host header")?.as_str(),
    };
    if !is_unnamed(host) {
        return Err("Host must be an address or localhost");
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().map_err(|_| "Origin is not text")?;
    let same = origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host));
    if same { Ok(()) } else { Err("Origin is another site") }
}

/// Whether `host`, with or without a port, is an address or `localhost`.
fn is_unnamed(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((v6, port)) => (v6, port.strip_prefix(':')),
            None => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    port.is_none_or(|port| port.parse::<u16>().is_ok())
        && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        check(&headers, &Uri::from_static("/")).is_ok()
    }

    #[test]
    fn addresses_and_localhost_pass() {
        for host in ["127.0.0.1:9641", "localhost:9641", "LOCALHOST", "[::1]:9641", "[::1]", "192.0.2.7:80"] {
            assert!(verdict(host, None), "{host}");
            assert!(verdict(host, Some(&format!("http://{host}"))), "{host}");
        }
    }

    #[test]
    fn names_that_can_be_rebound_are_refused() {
        for host in
            ["evil.example:9641", "127.0.0.1.evil.example", "localhost.evil.example", "[::1", "", "::1", "localhost:x"]
        {
            assert!(!verdict(host, None), "{host}");
        }
    }

    #[test]
    fn another_origin_is_refused() {
        for origin in ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost:9641"] {
            assert!(!verdict("127.0.0.1:9641", Some(origin)), "{origin}");
        }
    }
}
