//! What a venue's REST interface answers on a bad day.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tt_venue::Venue;

use super::{SOON, SimVenue, feed, follow, simulator};

/// Answers requests for snapshots as it is message, and has the simulator answer all else.
pub(super) struct BadDay {
    pub(super) addr: SocketAddr,
    /// When each snapshot was asked for.
    pub(super) asked: Arc<Mutex<Vec<Instant>>>,
}

impl BadDay {
    pub(super) fn start(behind: SocketAddr, answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let mut answers = VecDeque::from(answers);
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let head = head(&mut stream);
                let answer = if head.contains("/depth") {
                    noted.lock().unwrap().push(Instant::now());
                    answers.pop_front()
                } else {
                    None
                };
                let answer = answer.unwrap_or_else(|| {
                    let mut venue = TcpStream::connect(behind).unwrap();
                    venue.write_all(head.as_bytes()).unwrap();
                    let mut answer = Vec::new();
                    venue.read_to_end(&mut answer).unwrap();
                    answer
                });
                let _ = stream.write_all(&answer);
            }
        });
        Self { addr, asked }
    }
}

fn head(stream: &mut TcpStream) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(char::from(byte[0]));
    }
    head
}

/// A response with `head` after its version.
pub(super) fn of(head: &str, body: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).into_bytes();
    answer.extend(body);
    answer
}

#[test]
fn case_m47_refusals_and_broken_answers_are_waited_out_without_a_hot_loop() {
    // The beginning of a gzip stream, as a proxy may send unrequested.
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0x56];
    let mut cut_off = of("200 OK", br#"{"lastUpdateId":5,"bids":[["1.0","2.0"]],"asks":[]}"#);
    cut_off.truncate(cut_off.len() - 20);
    let answers = vec![
        of("429 Too Many Requests\r\nRetry-After: 1", b"{}"),
        of("418 I'm a teapot\r\nRetry-After: 2", b"{}"),
        of("503 Service Unavailable\r\nContent-Type: text/html", b"<html><h1>503</h1></html>"),
        of("502 Bad Gateway\r\nRetry-After: 1", b""),
        of("200 OK\r\nContent-Type: text/html", b"<html>maintenance</html>"),
        of("200 OK\r\nContent-Encoding: gzip", &gzip),
        cut_off,
    ];
    let waits_ms: [u64; 7] = [1000, 2000, 0, 1000, 0, 0, 0];
    let sim = simulator(1, 200.0);
    let day = BadDay::start(sim.address(SimVenue::BinanceSpot), answers);
    let mut config = feed(&sim, Venue::BinanceSpot);
    config.rest = Some(format!("http://{}", day.addr).parse().unwrap());
    let running = follow(vec![config]);
    let reader = running.reader();
    assert!(reader.wait(2 * SOON, || reader.all_verified()), "{:?} {:?}", reader.status(0), reader.counters(0));
    let asked = day.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), waits_ms.len() + 1, "each answer leads to one more request");
    for (number, (pair, asked_for_ms)) in asked.windows(2).zip(waits_ms).enumerate() {
        // A retry waits an eighth of a second at least, whatever the venue says.
        let least = Duration::from_millis(asked_for_ms.max(125));
        assert!(pair[1] - pair[0] >= least, "answer {number}: asked again after {:?}", pair[1] - pair[0]);
    }
    assert_eq!(reader.status(0).connections, 1, "the socket is as good as before");
    running.stop();
    assert!(reader.counters(0).closes());
    sim.stop();
}
