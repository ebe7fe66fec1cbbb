//! `up`, `demo` and `stun` as a new user runs them, and what the live table is on a terminal.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use testkit::{Requirement, find_program, require};

use super::served::Served;

const PROGRAM: &str = env!("CARGO_BIN_EXE_truetick");
const UP: [&str; 8] = ["up", "--simulated", "--venue", "kraken", "--symbols", "BTC/USD", "--http", "127.0.0.1:0"];

fn truetick(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).unwrap()
}

#[test]
fn up_serves_the_books_of_one_venue_and_calls_them_simulated() {
    let served = Served::of(&UP);
    served.wait_ready();
    let book = served.wait("/api/v1/market/orderbook?venue=kraken&symbol=BTC/USD&depth=5", |book| {
        book[0]["proof"] == "crc" || book["proof"] == "crc"
    });
    assert!(book.to_string().contains("\"simulated\":true"), "{book}");
    assert_eq!(served.get("/").status, 200);
    assert!(served.get("/metrics").body.contains("\ntruetick_market_simulated 1\n"));
    // The simulated venue has other symbols; none but the wanted one is followed.
    assert_eq!(served.get("/api/v1/market/orderbook?venue=kraken&symbol=ETH/USD").status, 404);
}

#[test]
fn up_names_what_is_missing_or_unknown() {
    let output = truetick(&["up"]);
    let error = text(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("--venue <VENUE>"), "{error}");
    let output = truetick(&["up", "--simulated", "--venue", "kraken", "--symbols", "NONE/USD"]);
    let error = text(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("the simulated kraken has BTC/USD"), "{error}");
}

#[test]
fn demo_relays_a_call_catches_faults_and_refuses_orders() {
    let output = truetick(&["--log-level", "off", "demo", "--seconds", "60"]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{shown}");
    for part in ["A call is relayed: yes", "A fault is caught: yes", "An order is refused: yes"] {
        assert!(shown.contains(part), "{shown}");
    }
    for figure in
        ["100 of 100 payloads came back", "the server rejects the request: 403", "a digit changed", ": refused, "]
    {
        assert!(shown.contains(figure), "{shown}");
    }
    assert!(!shown.contains('\u{1b}') && !shown.contains('\r'), "no terminal: {shown:?}");
    // The accounting of each engine closes.
    assert!(["datagrams", "frames", "intents"].iter().all(|unit| shown.contains(unit)) && !shown.contains('\u{2260}'));
}

#[test]
fn demo_ends_with_status_1_if_a_part_did_not_happen() {
    let output = truetick(&["--log-level", "off", "demo", "--seconds", "0.001"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains(": NO, ") && shown.contains("not within --seconds"), "{shown}");
}

/// Runs the program with a pseudo-terminal of `script` as standard output.
fn on_terminal(script: &Path, environment: &str) -> String {
    let command = format!("{environment} {PROGRAM} {} --seconds 4", UP.join(" "));
    let arguments = ["--quiet", "--return", "--command", &command, "/dev/null"];
    let output = Command::new(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

const HOME: &str = "\u{1b}[H";

#[test]
fn the_table_redraws_in_place_and_in_colour_on_a_terminal() {
    let script = find_program("script", "bsdutils");
    let Some(script) = require(Requirement::Program, script) else { return };
    let shown = on_terminal(&script, "env NO_COLOR=");
    let tables: Vec<&str> = shown.split(HOME).skip(1).collect();
    assert!(tables.len() >= 2, "{shown:?}");
    for table in tables {
        // The address of the page stays above the table, and nothing of the table before stays below.
        assert!(table.starts_with("The page: http://127.0.0.1:") && table.contains("\u{1b}[J"), "{table:?}");
        assert!(table.lines().take(5).all(|line| line.contains("\u{1b}[K")), "{table:?}");
    }
    assert!(shown.contains("\u{1b}[32mcrc       \u{1b}[0m"), "{shown:?}");
}

#[test]
fn no_color_and_pipes_get_no_colour() {
    let piped = text(&truetick(&[&UP[..], &["--seconds", "2"]].concat()).stdout);
    assert!(piped.contains("kraken") && !piped.contains('\u{1b}'), "{piped:?}");
    let script = find_program("script", "bsdutils");
    let Some(script) = require(Requirement::Program, script) else { return };
    let shown = on_terminal(&script, "env NO_COLOR=1");
    assert!(shown.contains(HOME) && !shown.contains("\u{1b}[32m"), "{shown:?}");
}

#[test]
fn a_long_command_shows_its_progress_on_a_terminal_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.ttj");
    let path = path.to_str().unwrap();
    let recorded = truetick(&["record", "--venue", "kraken", "--symbols", "BTC/USD", "--seconds", "3", "--out", path]);
    assert!(recorded.status.success(), "{recorded:?}");
    // At its own pace it takes longer than the second without progress.
    let replay = ["replay", "--pace", "recorded", path];
    let piped = truetick(&replay);
    assert!(piped.status.success() && piped.stderr.is_empty(), "{piped:?}");
    let script = find_program("script", "bsdutils");
    let Some(script) = require(Requirement::Program, script) else { return };
    let command = format!("{PROGRAM} {} > {path}.out", replay.join(" "));
    let arguments = ["--quiet", "--return", "--command", &command, "/dev/null"];
    let shown = text(&Command::new(script).args(arguments).output().unwrap().stdout);
    let lines: Vec<&str> = shown.split('\r').filter(|line| line.starts_with("replay: ")).collect();
    assert!(lines.len() >= 2, "{shown:?}");
    for line in &lines {
        assert!(line.contains(" %, ") && line.contains(" MB/s, about ") && line.contains(" s left"), "{line:?}");
    }
    // It redraws one line, and clears it at the end.
    assert!(!shown.contains('\n') && shown.ends_with("\r\u{1b}[K"), "{shown:?}");
    assert!(!std::fs::read(format!("{path}.out")).unwrap().is_empty(), "the result is on standard output");
}

/// A STUN server that claims to see 192.0.2.7, written from RFC 8489; it answers `requests` requests.
fn claims_192_0_2_7(requests: usize) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = socket.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for _ in 0..requests {
            let mut request = [0; 100];
            let (_, from) = socket.recv_from(&mut request).unwrap();
            let mut response = vec![1, 1, 0, 12];
            response.extend(&request[4..20]);
            response.extend([0, 0x20, 0, 8, 0, 1, 0x21 ^ 0x12, 0x12 ^ 0x34]);
            response.extend([192 ^ 0x21, 0x12, 2 ^ 0xA4, 7 ^ 0x42]);
            socket.send_to(&response, from).unwrap();
        }
    });
    addr
}

#[test]
fn stun_prints_the_address_that_the_server_sees() {
    let output = truetick(&["stun", &claims_192_0_2_7(1)]);
    let line = text(&output.stdout);
    assert!(output.status.success() && line.starts_with("192.0.2.7:4660 ("), "{line}");
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let output = truetick(&["stun", &closed]);
    let error = text(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("Connection refused"), "{error}");
}

/// `--print-config` with `flags` and environment variables: the external addresses, or the error.
fn external_ip(flags: &[&str], environment: &[(&str, &str)]) -> Result<String, String> {
    let mut command = Command::new(PROGRAM);
    command.args(["turn", "--listen", "127.0.0.1:0", "--print-config"]).args(flags);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let lines = text(&output.stdout);
    let line = lines.lines().find(|line| line.starts_with("external_ip"));
    if output.status.success() { Ok(line.unwrap().to_owned()) } else { Err(text(&output.stderr)) }
}

#[test]
fn turn_asks_a_stun_server_for_its_public_address() {
    let expected = Ok("external_ip = [\"192.0.2.7\"]".to_owned());
    assert_eq!(external_ip(&["--stun-server", &claims_192_0_2_7(1)], &[]), expected);
    assert_eq!(external_ip(&[], &[("EXTERNAL_IP", "192.0.2.7")]), expected);
    let auto = [("EXTERNAL_IP", "auto"), ("STUN_SERVER", &claims_192_0_2_7(1))];
    assert_eq!(external_ip(&[], &auto), expected);
    // A flag counts before the environment.
    let flag = external_ip(&["--external-ip", "198.51.100.1"], &[("EXTERNAL_IP", "192.0.2.7")]);
    assert_eq!(flag, Ok("external_ip = [\"198.51.100.1\"]".to_owned()));
    let missing = external_ip(&[], &[("EXTERNAL_IP", "auto")]).unwrap_err();
    assert!(missing.contains("EXTERNAL_IP=auto needs STUN_SERVER=HOST[:PORT]"), "{missing}");
    let wrong = external_ip(&[], &[("EXTERNAL_IP", "nowhere")]).unwrap_err();
    assert!(wrong.contains("EXTERNAL_IP: nowhere"), "{wrong}");
}

/// The variables of the image coturn/coturn: those that have no counterpart are errors that say what to set.
#[test]
fn turn_takes_the_environment_of_coturns_image_or_names_it() {
    let expected = Ok("external_ip = [\"192.0.2.7\"]".to_owned());
    assert_eq!(external_ip(&[], &[("REAL_EXTERNAL_IP", "192.0.2.7")]), expected);
    let both = [("REAL_EXTERNAL_IP", "198.51.100.1"), ("EXTERNAL_IP", "192.0.2.7"), ("DETECT_EXTERNAL_IP", "yes")];
    assert_eq!(external_ip(&[], &both), expected);
    let detect = [("DETECT_EXTERNAL_IP", "yes"), ("STUN_SERVER", &claims_192_0_2_7(1))];
    assert_eq!(external_ip(&[], &detect), expected);
    // Only IPv6 is to be looked up: the server is not asked about IPv4.
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let ipv6 = [("DETECT_EXTERNAL_IPV6", "yes"), ("STUN_SERVER", closed.as_str())];
    assert_eq!(external_ip(&[], &ipv6), Ok("external_ip = [\"127.0.0.1\"]".to_owned()));
    for (flags, environment, error) in [
        (&[][..], [("DETECT_EXTERNAL_IP", "yes")], "DETECT_EXTERNAL_IP needs STUN_SERVER=HOST[:PORT]"),
        (&[], [("DETECT_EXTERNAL_IPV6", "yes")], "DETECT_EXTERNAL_IPV6 needs STUN_SERVER=HOST[:PORT]"),
        (&[], [("DETECT_RELAY_IP", "yes")], "DETECT_RELAY_IP: set relay_ip to an address of this host"),
        (&["--external-ip", "192.0.2.7"], [("DETECT_RELAY_IPV6", "yes")], "DETECT_RELAY_IPV6: set relay_ip"),
        (&[], [("REAL_EXTERNAL_IP", "192.0.2.7/10.0.0.1")], "REAL_EXTERNAL_IP: 192.0.2.7/10.0.0.1"),
    ] {
        let named = external_ip(flags, &environment).unwrap_err();
        assert!(named.contains(error), "{named}");
    }
    let flags = ["--relay-ip", "127.0.0.1", "--external-ip", "192.0.2.7"];
    assert_eq!(external_ip(&flags, &[("DETECT_RELAY_IP", "yes"), ("DETECT_EXTERNAL_IP", "yes")]), expected);
    assert_eq!(external_ip(&[], &[("DETECT_RELAY_IP", ""), ("EXTERNAL_IP", "192.0.2.7")]), expected);
}
