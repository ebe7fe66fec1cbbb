//! HTTP requests to the control plane: it answers each, and single allocations are reached with the token alone.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use control::{Admin, ApiToken, Running, State};
use tt_status::reload::{Reload, ReloadFuture};
use tt_status::turn::{
    AllocationAdmin, AllocationCursor, AllocationPage, Ban, BanError, EndedUsers, LiveAllocation, NoReply, Operator,
    OrderFuture, ReplyFuture,
};
use zeroize::Zeroizing;

use crate::choices::Choices;

const TOKEN: &str = "a-token-that-is-secret";
const ALLOCATION: &str = "/api/v1/turn/allocations/192.0.2.1:50000";
const USER: &str = "/api/v1/turn/users/ann";
const BAN: &str = "/api/v1/turn/bans/192.0.2.0/24";
const DRAIN: &str = "/api/v1/turn/drain";
const RELOAD: &str = "/api/v1/reload";
const METHODS: &[&str] = &["GET", "DELETE", "HEAD", "POST", "PUT", "OPTIONS", "PATCH", "BREW"];
const PATHS: &[&str] = &[
    ALLOCATION,
    USER,
    BAN,
    DRAIN,
    RELOAD,
    "/",
    "/metrics",
    "/healthz",
    "/readyz",
    "/api/v1/turn/allocations",
    "/api/v1/turn/bans",
    "/api/v1/turn/users?limit=5",
    "/api/v1/turn/stages",
    "/api/v1/market/ticker?symbol=BTC/USDT",
    "/api/v1/market/orderbook?venue=x&symbol=%00",
    "/api/v1/risk/limits",
    "/api/v1/machine",
    "/api/v1/openapi.json",
];
const HOSTS: &[&str] = &["127.0.0.1", "localhost:9641", "[::1]", "example.org", "127.0.0.1.example.org", ""];
/// How many of [`HOSTS`] name no site.
const OWN_HOSTS: usize = 3;

/// How often a request reached single allocations, or ordered something.
static REACHED: AtomicU32 = AtomicU32::new(0);
static SERVER: LazyLock<Running> = LazyLock::new(|| start(Some(TOKEN)));
/// A server that was given no token.
static LOCKED: LazyLock<Running> = LazyLock::new(|| start(None));

struct Allocations;

impl AllocationAdmin for Allocations {
    fn ended_users(&self, _rows_max: usize) -> EndedUsers {
        EndedUsers::default()
    }

    fn page(&self, _from: AllocationCursor, _rows_max: usize) -> ReplyFuture<'_, AllocationPage> {
        REACHED.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(AllocationPage::default()) })
    }

    fn find(&self, _relayed: SocketAddr) -> ReplyFuture<'_, Option<LiveAllocation>> {
        REACHED.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(None) })
    }

    fn end(&self, _relayed: SocketAddr) -> ReplyFuture<'_, bool> {
        REACHED.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(true) })
    }

    fn end_user(&self, _user: String, _realm: Option<String>) -> ReplyFuture<'_, u64> {
        REACHED.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(1) })
    }
}

impl Operator for Allocations {
    fn ban<'a>(&'a self, source: &'a str, _time: Duration) -> OrderFuture<'a, Result<(String, u64), BanError>> {
        REACHED.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok((source.to_owned(), 1)) })
    }

    fn end_ban<'a>(&'a self, _source: &'a str) -> OrderFuture<'a, Result<bool, BanError>> {
        REACHED.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(true) })
    }

    fn bans(&self) -> Vec<Ban> {
        REACHED.fetch_add(1, Ordering::SeqCst);
        Vec::new()
    }

    fn drain(&self, _alternates: Vec<SocketAddr>) -> OrderFuture<'_, Result<(), NoReply>> {
        REACHED.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(()) })
    }

    fn end_drain(&self) {
        REACHED.fetch_add(1, Ordering::SeqCst);
    }
}

impl Reload for Allocations {
    fn reload(&self) -> ReloadFuture<'_> {
        REACHED.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(()) })
    }
}

fn start(token: Option<&str>) -> Running {
    let token = token.map(|token| ApiToken::new(Zeroizing::new(token.to_owned())));
    let admin = Some(Admin { allocations: Arc::new(Allocations), operator: Arc::new(Allocations) });
    let state = State { admin, reload: Some(Arc::new(Allocations)), token, ..State::default() };
    control::start(SocketAddr::from(([127, 0, 0, 1], 0)), state).expect("a server")
}

/// Sends a request that `data` chooses, or `data` as it is.
///
/// # Panics
/// There is no answer, or allocations are reached otherwise than with the token.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    if kind.is_multiple_of(4) {
        // No bytes that do not contain the token may reach an allocation.
        let reached = REACHED.load(Ordering::SeqCst);
        send(&SERVER, rest, Ending::HalfClosed);
        let has_token = rest.windows(TOKEN.len()).any(|bytes| bytes == TOKEN.as_bytes());
        assert!(has_token || REACHED.load(Ordering::SeqCst) == reached, "reached without the token");
    } else {
        request(&mut Choices(rest));
    }
    let alive = send(&SERVER, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", Ending::Open);
    assert!(alive.starts_with("HTTP/1.1 "), "no answer after the request: {alive}");
}

fn request(choices: &mut Choices) {
    let (method, path) = (*choices.of(METHODS), *choices.of(PATHS));
    let host = usize::from(choices.byte()) % HOSTS.len();
    let (bearer, is_token) = bearer(choices);
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", HOSTS[host]);
    if let Some(bearer) = &bearer {
        text += &format!("Authorization: {bearer}\r\n");
    }
    let is_foreign = choices.byte().is_multiple_of(4);
    if is_foreign {
        text += "Origin: https://example.org\r\n";
    }
    let reached = REACHED.load(Ordering::SeqCst);
    let is_locked = choices.byte() % 8 == 1;
    let server = if is_locked { &LOCKED } else { &SERVER };
    let response = send(server, (text + "\r\n").as_bytes(), Ending::Open);
    assert!(response.starts_with("HTTP/1.1 "), "{method} {path}: {response}");
    let served: &[&str] = match path {
        ALLOCATION => &["GET", "HEAD", "DELETE"],
        USER => &["DELETE"],
        BAN => &["PUT", "DELETE"],
        DRAIN => &["POST", "DELETE"],
        RELOAD => &["POST"],
        _ => &[],
    };
    let is_served = served.contains(&method);
    let expected = u32::from(is_served && is_token && !is_locked && host < OWN_HOSTS && !is_foreign);
    let reached = REACHED.load(Ordering::SeqCst) - reached;
    if [ALLOCATION, USER, BAN, DRAIN, RELOAD].contains(&path) {
        assert_eq!(reached, expected, "{method} {path} {bearer:?} {}", HOSTS[host]);
    }
    assert!(is_token || reached == 0, "{method} {path} {bearer:?}");
}

/// The value of the header, and whether it is the token: the right one, or one with a part missing, added or changed.
fn bearer(choices: &mut Choices) -> (Option<String>, bool) {
    let (kind, at) = (choices.byte(), usize::from(choices.byte()) % TOKEN.len());
    match kind % 8 {
        0 => (None, false),
        1 => (Some(format!("Bearer {}", &TOKEN[..at])), false),
        2 => (Some(format!("Bearer {}", &TOKEN[at + 1..])), false),
        3 => (Some(format!("Bearer {TOKEN}{}", &TOKEN[at..])), false),
        4 => {
            let mut changed = TOKEN.as_bytes().to_vec();
            changed[at] ^= 1 << (kind >> 6);
            (Some(format!("Bearer {}", String::from_utf8_lossy(&changed))), false)
        }
        5 => (Some(format!("Basic {TOKEN}")), false),
        _ => (Some(format!("Bearer {TOKEN}")), true),
    }
}

/// What follows a request on its connection.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    /// Nothing, until the server closes.
    Open,
    /// The client sends no more. The server may drop its response.
    HalfClosed,
}

/// Sends `request` on a new connection and returns the beginning of the response.
fn send(server: &Running, request: &[u8], ending: Ending) -> String {
    let mut stream = TcpStream::connect(server.listen()).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    // The server may close while the request is sent.
    let _ = stream.write_all(request);
    if ending == Ending::HalfClosed {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut response = Vec::new();
    let _ = stream.take(1 << 16).read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}
