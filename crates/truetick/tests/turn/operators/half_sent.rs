//! Connections over HTTP that keep their places, to a server with default settings.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use testkit::measured;

use super::operated::Operated;

const HALF_SENT: usize = 1_000;
/// Connections that each have got an answer, and stay: more than there are places.
const KEPT: usize = 300;
/// Requests for `/healthz` meanwhile.
const ASKED: usize = 20;

#[test]
fn healthz_is_answered_while_a_thousand_requests_are_half_sent() {
    tt_net::raise_descriptor_limit().unwrap();
    let server = Operated::start("", &[]);
    let half_sent = |_| {
        let mut stream = TcpStream::connect(server.http).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").unwrap();
        stream
    };
    let open: Vec<TcpStream> = (0..HALF_SENT).map(half_sent).collect();
    let longest = longest_of_healthz(&server);
    server.client("ann").allocate().unwrap();
    measured("HTTP", format_args!("{ASKED} of {ASKED} answered, each within {longest:.1?}"));
    drop(open);
}

#[test]
fn healthz_is_answered_while_every_place_has_a_connection_that_was_answered() {
    let server = Operated::start("", &[]);
    let answered = |_| {
        let mut stream = TcpStream::connect(server.http).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        stream.read_exact(&mut [0; 12]).unwrap();
        stream
    };
    let open: Vec<TcpStream> = (0..KEPT).map(answered).collect();
    let longest = longest_of_healthz(&server);
    measured("HTTP", format_args!("with {KEPT} connections that stay, {ASKED} of {ASKED}, each within {longest:.1?}"));
    drop(open);
}

/// Asks for `/healthz` again and again, and returns the longest time that an answer took.
fn longest_of_healthz(server: &Operated) -> Duration {
    let ask = |_| {
        let asked = Instant::now();
        let answer = server.ask("GET", "/healthz", None);
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
        asked.elapsed()
    };
    (0..ASKED).map(ask).max().unwrap_or_default()
}
