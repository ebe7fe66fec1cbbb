//! Calls of other people's clients that outlive their credentials: aioice, pion and Chromium, each with its own server and
//! forwarder, which notes what the server answered after the credential had expired.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;

use super::{Arguments, cargo};
use crate::soak::Program;

/// How long a credential is good.
const CREDENTIAL: Duration = Duration::from_secs(120);
/// How long a forwarder waits for a datagram before it looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const SECRET: &str = "qualify";
const FIRST_PORT: u16 = 13_480;
/// Seconds beyond the call that a client may take to connect and to end.
const SLACK_S: u64 = 60;

/// The requests that must pass after the expiry, with their methods (RFC 8656 section 17).
const REQUESTS: &[(&str, u16)] = &[("Refresh", 0x004), ("CreatePermission", 0x008), ("ChannelBind", 0x009)];
/// Bits of the class in a message type (RFC 8489 section 5).
const CLASS: u16 = 0x0110;
const SUCCESS: u16 = 0x0100;
const ERROR: u16 = 0x0110;

/// A client, and the requests that it makes of itself in a call.
struct Caller {
    name: &'static str,
    command: fn(&Path, &Call) -> anyhow::Result<Command>,
    requests: &'static [&'static str],
}

/// aioice binds channels and never asks for a permission.
const CALLERS: &[Caller] = &[
    Caller { name: "aioice", command: aioice, requests: &["Refresh", "ChannelBind"] },
    Caller { name: "pion", command: pion, requests: &["Refresh", "CreatePermission", "ChannelBind"] },
    Caller { name: "Chromium", command: chromium, requests: &["Refresh", "CreatePermission", "ChannelBind"] },
];

/// What a client needs to know.
struct Call {
    server: SocketAddr,
    user: String,
    password: String,
}

/// Numbers of what the server answered after the expiry, by what it was: "Refresh", "Refresh 438".
type Answers = BTreeMap<String, u64>;

pub(super) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<String> {
    let seconds = arguments.minutes * 60;
    ensure!(seconds > CREDENTIAL.as_secs(), "a call must outlive its credential of {CREDENTIAL:?}");
    // Before the calls, which end together.
    for client in [".venv/bin/python", "crates/truetick/tests/browser/node_modules", "/usr/bin/chromium"] {
        ensure!(root.join(client).exists(), "no {client}: `cargo xtask test clients browser --install` makes it");
    }
    let build = ["build", "--release", "--locked", "--package", "truetick"];
    ensure!(cargo(root, &build).status().context("cargo")?.success(), "the program does not build");
    let calls = CALLERS.iter().zip(0..).map(|(caller, number)| {
        let root = root.to_owned();
        thread::spawn(move || call(&root, caller, number, seconds))
    });
    let calls: Vec<_> = calls.collect();
    // Every call ends, and with it its server, before the first error is returned.
    let ended: Vec<_> = calls.into_iter().map(thread::JoinHandle::join).collect();
    let mut lines = Vec::new();
    for (caller, call) in CALLERS.iter().zip(ended) {
        let line = call.map_err(|_| anyhow::anyhow!("the thread of {} panicked", caller.name))?;
        lines.push(line.with_context(|| caller.name)?);
        println!("{}", lines[lines.len() - 1]);
    }
    Ok(format!("{} min with a credential of {} s: {}", arguments.minutes, CREDENTIAL.as_secs(), lines.join("; ")))
}

fn call(root: &Path, caller: &Caller, number: u16, seconds: u64) -> anyhow::Result<String> {
    let server = SocketAddr::from(([127, 0, 0, 1], FIRST_PORT + 3 * number));
    let http = SocketAddr::from(([127, 0, 0, 1], FIRST_PORT + 3 * number + 1));
    let relays = format!("{}-{}", 20_000 + 100 * number, 20_099 + 100 * number);
    let secret = root.join(format!("target/xtask/secret-{number}"));
    std::fs::create_dir_all(root.join("target/xtask"))?;
    std::fs::write(&secret, SECRET)?;
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600))?;
    let (listen, secret) = (server.to_string(), secret.to_string_lossy());
    let flags = ["turn", "--listen", &listen, "--auth-secret-file", &secret, "--relay-ports", &relays];
    let _program = Program::start_at(
        &root.join("target/release/truetick"),
        &[&flags[..], &["--allow-own-host", "127.0.0.0/8"]].concat(),
        http,
    )?;
    let expiry = SystemTime::now().duration_since(UNIX_EPOCH)? + CREDENTIAL;
    let user = format!("{}:{}", expiry.as_secs(), caller.name);
    let mut mac = Hmac::<Sha1>::new_from_slice(SECRET.as_bytes())?;
    mac.update(user.as_bytes());
    let password = BASE64.encode(mac.finalize().into_bytes());
    // A whole second more, since the name has no fractions.
    let forwarder = Forwarder::start(server, Instant::now() + CREDENTIAL + Duration::from_secs(1))?;
    let mut command = (caller.command)(root, &Call { server: forwarder.addr, user, password })?;
    command.env("HOLD_SECONDS", seconds.to_string()).stdin(Stdio::null());
    let started = Instant::now();
    let output = command.output().context("the client does not start")?;
    let (held, took) = (held(&output)?, started.elapsed().as_secs());
    ensure!((seconds..=seconds + SLACK_S).contains(&took), "the call took {took} s instead of {seconds}");
    ensure!(held.0 > 0 && held.0 == held.1, "of {} payloads {} arrived", held.0, held.1);
    let answers = forwarder.end()?;
    let refused = answers.keys().find(|name| name.contains(' ') && !name.ends_with(" 438"));
    ensure!(refused.is_none(), "refused after the expiry: {answers:?}");
    for request in caller.requests {
        ensure!(answers.contains_key(*request), "no {request} passed after the expiry: {answers:?}");
    }
    let answers: Vec<_> = answers.iter().map(|(name, count)| format!("{name} {count}")).collect();
    Ok(format!("{}: {} of {} payloads, after the expiry {}", caller.name, held.1, held.0, answers.join(", ")))
}

/// Payloads that were sent while the call was held, and those that came back.
fn held(output: &Output) -> anyhow::Result<(u64, u64)> {
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    let line = text.lines().last().context("the client printed nothing")?;
    let result: serde_json::Value = serde_json::from_str(line)?;
    let number = |key: &str| result["held"][key].as_u64().with_context(|| format!("no held.{key}: {line}"));
    Ok((number("sent")?, number("matched")?))
}

fn aioice(root: &Path, call: &Call) -> anyhow::Result<Command> {
    let tests = root.join("crates/truetick/tests");
    let mut command = Command::new(root.join(".venv/bin/python"));
    command.arg(tests.join("turn/clients/aioice_relay.py"));
    command.args([call.server.ip().to_string(), call.server.port().to_string()]).args([&call.user, &call.password]);
    command.arg("udp");
    Ok(command)
}

fn pion(root: &Path, call: &Call) -> anyhow::Result<Command> {
    let client = root.join("target/xtask/pion-client");
    let mut build = Command::new("go");
    build.current_dir(root.join("crates/truetick/tests/turn/clients/pion"));
    build.args(["build", "-o"]).arg(&client).arg(".").env("GOTOOLCHAIN", "local").env("GOFLAGS", "-mod=readonly");
    ensure!(build.status().context("go")?.success(), "pion's client does not build");
    let mut command = Command::new(client);
    command.args([&call.server.to_string(), &call.user, &call.password, "100"]);
    Ok(command)
}

fn chromium(root: &Path, call: &Call) -> anyhow::Result<Command> {
    let mut command = Command::new("node");
    command.current_dir(root.join("crates/truetick/tests/browser")).arg("relay.mjs").arg("/usr/bin/chromium");
    command.arg(format!("turn:{}?transport=udp", call.server)).args([&call.user, &call.password]);
    Ok(command)
}

/// Forwards datagrams between clients and a server, a socket for each client, and notes answers after a point in time.
struct Forwarder {
    addr: SocketAddr,
    must_end: Arc<AtomicBool>,
    answers: Arc<Mutex<Answers>>,
    forwarding: thread::JoinHandle<std::io::Result<()>>,
}

impl Forwarder {
    fn start(server: SocketAddr, from: Instant) -> anyhow::Result<Self> {
        let front = UdpSocket::bind("127.0.0.1:0")?;
        front.set_read_timeout(Some(LOOK_EVERY))?;
        let addr = front.local_addr()?;
        let must_end = Arc::new(AtomicBool::new(false));
        let answers = Arc::<Mutex<Answers>>::default();
        let (end, notes) = (Arc::clone(&must_end), Arc::clone(&answers));
        let forwarding = thread::spawn(move || forward(&front, server, from, &end, &notes));
        Ok(Self { addr, must_end, answers, forwarding })
    }

    fn end(self) -> anyhow::Result<Answers> {
        self.must_end.store(true, Ordering::Relaxed);
        self.forwarding.join().map_err(|_| anyhow::anyhow!("the forwarder panicked"))??;
        let mut answers = self.answers.lock().map_err(|_| anyhow::anyhow!("a forwarder's thread panicked"))?;
        Ok(std::mem::take(&mut *answers))
    }
}

fn forward(
    front: &UdpSocket,
    server: SocketAddr,
    from: Instant,
    must_end: &Arc<AtomicBool>,
    answers: &Arc<Mutex<Answers>>,
) -> std::io::Result<()> {
    let mut clients: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
    let mut buffer = [0; 65_536];
    while !must_end.load(Ordering::Relaxed) {
        let Ok((length, client)) = front.recv_from(&mut buffer) else { continue };
        let back = match clients.get(&client) {
            Some(back) => back,
            None => {
                let back = UdpSocket::bind("127.0.0.1:0")?;
                back.connect(server)?;
                back.set_read_timeout(Some(LOOK_EVERY))?;
                let (front, own) = (front.try_clone()?, back.try_clone()?);
                let (must_end, answers) = (Arc::clone(must_end), Arc::clone(answers));
                thread::spawn(move || give_back(&front, &own, client, from, &must_end, &answers));
                clients.entry(client).or_insert(back)
            }
        };
        // What the server does not take is lost as on any network; the payloads of the call show it.
        let _ = back.send(&buffer[..length]);
    }
    Ok(())
}

/// Forwards what the server sends to `client`.
fn give_back(
    front: &UdpSocket,
    back: &UdpSocket,
    client: SocketAddr,
    from: Instant,
    must_end: &AtomicBool,
    answers: &Mutex<Answers>,
) {
    let mut buffer = [0; 65_536];
    while !must_end.load(Ordering::Relaxed) {
        let Ok(length) = back.recv(&mut buffer) else { continue };
        if let Some(name) = answer(&buffer[..length]).filter(|_| Instant::now() >= from)
            && let Ok(mut answers) = answers.lock()
        {
            *answers.entry(name).or_default() += 1;
        }
        let _ = front.send_to(&buffer[..length], client);
    }
}

/// The request that `datagram` answers, with the code of an error.
fn answer(datagram: &[u8]) -> Option<String> {
    let kind = u16::from_be_bytes(*datagram.first_chunk()?);
    let (name, _) = REQUESTS.iter().find(|(_, method)| kind & !CLASS == *method)?;
    match kind & CLASS {
        SUCCESS => Some((*name).to_owned()),
        ERROR => Some(format!("{name} {}", error_code(datagram)?)),
        _ => None,
    }
}

/// The code of an ERROR-CODE attribute (RFC 8489 section 14.8).
fn error_code(datagram: &[u8]) -> Option<u16> {
    const ERROR_CODE: u16 = 0x0009;
    let mut attributes = datagram.get(20..)?;
    loop {
        let ([kind @ .., _, _], rest) = attributes.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([attributes[2], attributes[3]]));
        if u16::from_be_bytes(*kind) == ERROR_CODE {
            return Some(u16::from(*rest.get(2)?) * 100 + u16::from(*rest.get(3)?));
        }
        attributes = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_named_with_its_error() {
        let refresh = [&[0x01, 0x04, 0, 0][..], &[0; 16]].concat();
        assert_eq!(answer(&refresh).as_deref(), Some("Refresh"));
        let software = [0x80, 0x22, 0, 3, b'a', b'b', b'c', 0];
        let stale = [&[0x01, 0x18, 0, 16][..], &[0; 16], &software, &[0, 9, 0, 4, 0, 0, 4, 38]].concat();
        assert_eq!(answer(&stale).as_deref(), Some("CreatePermission 438"));
        let request = [&[0x00, 0x04, 0, 0][..], &[0; 16]].concat();
        assert_eq!(answer(&request), None);
        assert_eq!(answer(&[0x40, 0, 0, 4]), None, "channel data");
        assert_eq!(answer(&[]), None);
    }
}
