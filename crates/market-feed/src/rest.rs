//! One request by HTTP: a body of bounded length within a bounded time, or the reason why not.

use std::time::{Duration, SystemTime};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tt_meter::Clock;

use super::dial::dial;

/// The longest response body. A book of 5,000 levels per side is about 400 kB.
const BODY_BYTES_MAX: usize = 8 << 20;

/// The longest error body that is reported, in bytes.
const WORDS_MAX: usize = 1024;

/// An answer comes within this time, or the request has failed.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// What a venue asks for that answers 429 or 418 without `Retry-After`.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(5);

/// A venue that is busy is asked again after this time at the latest.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// A ban (418) lasts as long as the venue says, days among it: requests during a ban make it longer. No clock that is
/// wrong makes it last for more than this.
const BAN_MAX: Duration = Duration::from_secs(30 * 86_400);

/// A request to a venue, without its address.
#[derive(Clone, Debug)]
pub(super) struct RestRequest {
    method: Method,
    headers: Vec<(HeaderName, String)>,
    body: String,
}

impl RestRequest {
    /// A request without a body.
    pub(super) const fn get() -> Self {
        Self { method: Method::GET, headers: Vec::new(), body: String::new() }
    }

    /// A request with a body of `kind`.
    pub(super) fn post(kind: &str, body: String) -> Self {
        Self { method: Method::POST, headers: vec![(header::CONTENT_TYPE, kind.to_owned())], body }
    }

    /// A request that puts nothing.
    pub(super) const fn put() -> Self {
        Self { method: Method::PUT, headers: Vec::new(), body: String::new() }
    }

    /// The same with another header.
    pub(super) fn header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// What a venue answers.
#[derive(Debug)]
pub(super) struct Response {
    /// The body.
    pub(super) body: Bytes,
    /// The venue's time, to the second (`Date`).
    pub(super) date: Option<String>,
    headers: HeaderMap,
}

impl Response {
    /// The number in header `name`.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.headers.get(name)?.to_str().ok()?.trim().parse().ok()
    }
}

/// Why there is no body.
#[derive(Debug)]
pub(super) struct Failed {
    /// What went wrong, for the log.
    pub(super) reason: String,
    /// Whether the same request would fail again.
    pub(super) is_final: bool,
    /// The venue's answer; `None` if there was none.
    pub(super) status: Option<StatusCode>,
    /// How long the venue wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl Failed {
    pub(super) fn new(reason: impl ToString) -> Self {
        Self { reason: reason.to_string(), is_final: false, status: None, retry_after: None }
    }
}

/// The answer of `uri` to `request`.
///
/// # Errors
/// No connection, no answer in time, a status other than 200, or a body longer than 8 MiB.
pub(super) async fn send(uri: &Uri, request: RestRequest, clock: Clock) -> Result<Response, Failed> {
    match tokio::time::timeout(ANSWER_MAX, exchange(uri, request, clock)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failed::new("no answer within 15 s")),
    }
}

/// The answer of the first of `uris` that gives one.
///
/// # Errors
/// As [`send`], of the first one if none gives an answer.
pub(super) async fn send_to(uris: &[Uri], request: RestRequest, clock: Clock) -> Result<Response, Failed> {
    let mut unanswered = None;
    for uri in uris {
        match send(uri, request.clone(), clock).await {
            Err(failed) if failed.status.is_none() => drop(unanswered.get_or_insert(failed)),
            answered => return answered,
        }
    }
    Err(unanswered.unwrap_or_else(|| Failed::new("no address")))
}

async fn exchange(uri: &Uri, request: RestRequest, clock: Clock) -> Result<Response, Failed> {
    let (wire, _) = dial(uri, clock).await.map_err(|error| Failed::new(format!("{error:#}")))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(wire)).await.map_err(Failed::new)?;
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut http = Request::builder()
        .method(request.method)
        .uri(path)
        .header(header::HOST, host)
        .header(header::CONNECTION, "close")
        .header(header::USER_AGENT, concat!("truetick/", env!("CARGO_PKG_VERSION")));
    for (name, value) in request.headers {
        http = http.header(name, value);
    }
    let http = http.body(Full::new(Bytes::from(request.body))).map_err(Failed::new)?;
    let answer = async move {
        let response = sender.send_request(http).await.map_err(Failed::new)?;
        let status = response.status();
        if status != StatusCode::OK {
            let mut failed = refused(status, response.headers());
            // The venue's words, where it has some.
            if let Ok(body) = Limited::new(response.into_body(), WORDS_MAX).collect().await {
                let words = String::from_utf8_lossy(&body.to_bytes()).split_whitespace().collect::<Vec<_>>().join(" ");
                failed.reason = format!("{} {words}", failed.reason).trim_end().to_owned();
            }
            return Err(failed);
        }
        let headers = response.headers().clone();
        let date = headers.get(header::DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
        Ok(Response { body: body.map_err(Failed::new)?.to_bytes(), date, headers })
    };
    let driven = async move {
        // An error here reaches the answer, too.
        let _ = connection.await;
        std::future::pending::<()>().await
    };
    tokio::select! {
        body = answer => body,
        () = driven => Err(Failed::new("the connection ended")),
    }
}

fn refused(status: StatusCode, headers: &HeaderMap) -> Failed {
    let asked = headers.get(header::RETRY_AFTER);
    let asked = asked.and_then(|value| wait_of(value.to_str().ok()?, SystemTime::now()));
    let too_many = status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::IM_A_TEAPOT;
    let most = if status == StatusCode::IM_A_TEAPOT { BAN_MAX } else { RETRY_AFTER_MAX };
    let retry_after = asked.or(too_many.then_some(RETRY_AFTER_DEFAULT)).map(|wait| wait.min(most));
    Failed { reason: format!("HTTP status {status}"), is_final: is_final(status), status: Some(status), retry_after }
}

/// `Retry-After` in seconds or as a date (RFC 9110 section 10.2.3).
fn wait_of(text: &str, now: SystemTime) -> Option<Duration> {
    let seconds = text.trim().parse().ok().map(Duration::from_secs);
    seconds.or_else(|| Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()))
}

/// Whether `status` says that the request itself is wrong, rather than its time.
pub(super) fn is_final(status: StatusCode) -> bool {
    let passes = [
        // Too many requests from this address.
        StatusCode::FORBIDDEN,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::IM_A_TEAPOT,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    status.is_client_error() && !passes.contains(&status)
}

/// A symbol as a part of a path or a query: RFC 3986 section 2.1.
pub(super) fn percent_encoded(symbol: &str) -> String {
    let mut out = String::with_capacity(symbol.len());
    for byte in symbol.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/' | b':' | b'@') {
            out.push(char::from(byte));
        } else {
            let hex = |digit: u8| char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase();
            out.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_m47_retry_after_is_seconds_or_a_date_and_bounded() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_400);
        for (text, wait) in [
            ("120", Some(120)),
            ("0", Some(0)),
            // 1,445,412,480 s after the epoch.
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some(80)),
            ("Wed, 21 Oct 2015 07:20:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            assert_eq!(wait_of(text, now), wait.map(Duration::from_secs), "{text}");
        }
        let of = |status: StatusCode, text| {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, header::HeaderValue::from_static(text))]);
            refused(status, &headers).retry_after
        };
        assert_eq!(of(StatusCode::TOO_MANY_REQUESTS, "86400"), Some(RETRY_AFTER_MAX));
        assert_eq!(of(StatusCode::IM_A_TEAPOT, "soon"), Some(RETRY_AFTER_DEFAULT));
        assert_eq!(of(StatusCode::IM_A_TEAPOT, "259200"), Some(Duration::from_secs(259_200)), "three days");
        assert_eq!(of(StatusCode::IM_A_TEAPOT, "9999999999"), Some(BAN_MAX));
        assert_eq!(of(StatusCode::SERVICE_UNAVAILABLE, "7"), Some(Duration::from_secs(7)));
        assert_eq!(of(StatusCode::BAD_GATEWAY, "soon"), None);
    }
}
