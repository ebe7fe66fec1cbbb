//! Checks of every request against other sites in the user's browser, and headers of every response.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;

use crate::answer::rejected;
use crate::state::App;

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

/// Paths that any host name may be used for: scrapers and probes reach them by the name of a service. They contain no
/// secret and change nothing.
const BY_ANY_NAME: [&str; 3] = ["/metrics", "/healthz", "/readyz"];

/// Rejects requests that another site could have caused, and adds the headers to every response.
pub(crate) async fn guard(app: App, request: Request, next: Next) -> Response {
    let mut response = match check(request.headers(), request.uri(), &app.state.allowed_hosts) {
        Ok(()) => next.run(request).await,
        Err(reason) => rejected(StatusCode::FORBIDDEN, reason),
    };
    response.headers_mut().extend(HEADERS);
    response
}

/// The answer for a path that does not exist.
pub(crate) async fn not_found() -> Response {
    rejected(StatusCode::NOT_FOUND, "no such path")
}

/// Checks that a request was made by this server's own page or by a program.
///
/// DNS rebinding needs a name, so `Host` must be an address, `localhost` or one of `allowed_hosts`; the port is free, so
/// that a tunnel works. A WebSocket is not bound by the same-origin policy, so an `Origin` must be the server's own.
fn check(headers: &HeaderMap, uri: &Uri, allowed_hosts: &[String]) -> Result<(), &'static str> {
    let host = match headers.get(HOST) {
        Some(host) => host.to_str().map_err(|_| "Host is not text")?,
        None => uri.authority().ok_or("no Host header")?.as_str(),
    };
    let name = name_of(host).ok_or("Host is not a name or an address with an optional port")?;
    let is_address = name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok();
    let is_allowed = || allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    if !is_address && !is_allowed() && !BY_ANY_NAME.contains(&uri.path()) {
        return Err("Host must be an address, localhost, or listed in allowed_hosts of [http]");
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().map_err(|_| "Origin is not text")?;
    let same = origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host));
    if same { Ok(()) } else { Err("Origin is another site") }
}

/// The name or address in `host`, without brackets and port; none if the rest is not a port.
fn name_of(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (v6, port) = rest.split_once(']')?;
            (v6, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    (!name.is_empty() && port.is_none_or(|port| port.parse::<u16>().is_ok())).then_some(name)
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
        check(&headers, &Uri::from_static("/"), &["relay.example".to_owned()]).is_ok()
    }

    #[test]
    fn listed_hosts_pass_and_probes_pass_by_any_name() {
        assert!(verdict("relay.example:9641", None) && !verdict("relay.example", Some("https://evil.example")));
        assert!(verdict("relay.example:9641", Some("http://relay.example:9641")));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("truetick:9641"));
        for (path, passes) in
            [("/metrics", true), ("/healthz", true), ("/readyz", true), ("/", false), ("/metrics/x", false)]
        {
            assert_eq!(check(&headers, &path.parse().unwrap(), &[]).is_ok(), passes, "{path}");
        }
        headers.insert(ORIGIN, HeaderValue::from_static("https://evil.example"));
        assert!(check(&headers, &Uri::from_static("/metrics"), &[]).is_err());
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
        for host in [
            "evil.example:9641",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "[::1",
            "",
            ":80",
            "::1",
            "localhost:x",
            "[::1]x",
        ] {
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
