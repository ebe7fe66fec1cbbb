//! Files of coturn: truetick under the name `turnserver` and Debian's coturn start from the same file and answer the
//! same requests. Every difference is listed with its reason.

mod files;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use testkit::turn_client::{
    ALLOCATE, COOKIE, Client, FINGERPRINT, LIFETIME, REALM, REFRESH, REQUESTED_TRANSPORT, Response, SOFTWARE,
    XOR_RELAYED_ADDRESS, parse, put,
};
use testkit::{Requirement, find_program, require};

use crate::certificates::Certificates;
use crate::operators::namespaces::Network;
use crate::server::program;
use files::{BIGBLUEBUTTON, Golden, JITSI, MATRIX_DOCKER_ANSIBLE, NEXTCLOUD, SECRET, SYNAPSE};

/// Addresses of the server and of its clients, in a namespace of each server.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const START_MAX: Duration = Duration::from_secs(60);
const OTHER_ADDRESS: u16 = 0x802c;
const RESPONSE_ORIGIN: u16 = 0x802b;
const MAPPED_ADDRESS: u16 = 0x0001;

/// Peers of permissions. None of them exists.
const PEERS: [(&str, [u8; 4]); 9] = [
    ("public", [8, 8, 8, 8]),
    ("the server", [10, 0, 0, 1]),
    ("this host", [10, 0, 0, 2]),
    ("private 192.168", [192, 168, 1, 1]),
    ("private 172.16", [172, 16, 0, 1]),
    ("metadata", [169, 254, 169, 254]),
    ("carrier-grade NAT", [100, 64, 0, 1]),
    ("loopback", [127, 0, 0, 1]),
    ("multicast", [224, 0, 0, 1]),
];

/// What a server answered: question and answer.
type Answers = Vec<(String, String)>;

/// A server that was started from a file; ends when dropped.
struct Started(Child);

impl Started {
    /// Starts `program` with the file in `folder`, and waits until it answers on `port`.
    fn new(program: &Path, folder: &Path, port: u16) -> Self {
        let text = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let child = Command::new(program)
            .args(["-c", &text("turnserver.conf"), "--pidfile", &text("pid"), "--no-stdout-log", "--simple-log"])
            .args(["--log-file", &text("log")])
            .stdout(Stdio::null())
            .stderr(fs::File::create(text("stderr")).unwrap())
            .spawn()
            .unwrap();
        let mut started = Self(child);
        let probe = UdpSocket::bind((CLIENT, 0)).unwrap();
        probe.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let binding = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
        let begun = Instant::now();
        loop {
            let _ = probe.send_to(&binding, SocketAddr::from((SERVER, port)));
            if probe.recv(&mut [0; 512]).is_ok() {
                return started;
            }
            let has_ended = started.0.try_wait().unwrap().is_some();
            let log = || fs::read_to_string(text("stderr")).unwrap_or_default();
            assert!(!has_ended && begun.elapsed() < START_MAX, "{} does not answer: {}", program.display(), log());
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A time-limited name and its password.
fn credential(lifetime_s: i64) -> (String, String) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
    let name = format!("{}:alice", now + lifetime_s);
    let mut mac = Hmac::<Sha1>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(name.as_bytes());
    (name, BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

fn client(port: u16, (name, password): (String, String)) -> Client {
    Client::on(CLIENT.into(), SocketAddr::from((SERVER, port)), &name, &password)
}

fn lifetime(answer: &Response) -> String {
    let seconds = answer.bytes(LIFETIME).map(|bytes| u32::from_be_bytes(bytes.try_into().unwrap()));
    format!("{} {}", answer.code, seconds.map_or_else(|| "-".to_owned(), |seconds| seconds.to_string()))
}

fn allocate(client: &mut Client, transport: u8) -> Response {
    client.request(ALLOCATE, vec![(REQUESTED_TRANSPORT, vec![transport, 0, 0, 0])])
}

/// The response to an Allocate without a credential.
fn without_credential(port: u16) -> Response {
    let mut message = [&ALLOCATE.to_be_bytes()[..], &[0, 0], &COOKIE, &[9; 12]].concat();
    put(&mut message, REQUESTED_TRANSPORT, &[17, 0, 0, 0]);
    let mut client = client(port, credential(600));
    client.send(&message);
    let mut received = [0; 1_024];
    let length = client.socket.recv(&mut received).unwrap();
    parse(&received[..length]).1
}

fn code_of(answer: Result<SocketAddr, u16>) -> String {
    answer.map_or_else(|code| code.to_string(), |_| "0".to_owned())
}

/// Asks the server at `port` everything.
fn answers(port: u16) -> Answers {
    let mut answers: Answers = Vec::new();
    let mut add = |question: &str, answer: String| answers.push((question.to_owned(), answer));
    let binding = client(port, credential(600)).binding_response();
    add("binding", binding.code.to_string());
    for (name, kind) in [
        ("SOFTWARE", SOFTWARE),
        ("FINGERPRINT", FINGERPRINT),
        ("MAPPED-ADDRESS", MAPPED_ADDRESS),
        ("OTHER-ADDRESS", OTHER_ADDRESS),
        ("RESPONSE-ORIGIN", RESPONSE_ORIGIN),
    ] {
        add(&format!("binding: {name}"), binding.bytes(kind).is_some().to_string());
    }
    let unauthenticated = without_credential(port);
    add("allocate without credential", unauthenticated.code.to_string());
    add("realm", String::from_utf8_lossy(unauthenticated.bytes(REALM).unwrap()).into_owned());
    let (name, password) = credential(600);
    add("allocate with wrong password", code_of(client(port, (name.clone(), password + "x")).allocate()));
    add("allocate with expired credential", code_of(client(port, credential(-5)).allocate()));
    let foreign = ("alice".to_owned(), "alice".to_owned());
    add("allocate with unknown user", code_of(client(port, foreign).allocate()));
    add("allocate TCP over UDP", allocate(&mut client(port, credential(600)), 6).code.to_string());

    let mut client = client(port, credential(600));
    let allocated = allocate(&mut client, 17);
    add("allocate", lifetime(&allocated));
    let relayed = allocated.address(XOR_RELAYED_ADDRESS);
    add("relayed address", relayed.map_or_else(String::new, |relayed| relayed.ip().to_string()));
    add("allocate again", allocate(&mut client, 17).code.to_string());
    for (name, peer) in PEERS {
        add(&format!("permission: {name}"), client.permit(SocketAddr::from((peer, 9))).to_string());
    }
    let peer = SocketAddr::from(([8, 8, 8, 8], 9));
    add("channel 0x4000", client.bind_channel(0x4000, peer).to_string());
    add("channel 0x4000 of another peer", client.bind_channel(0x4000, SocketAddr::from(([8, 8, 4, 4], 9))).to_string());
    add("channel 0x3fff", client.bind_channel(0x3fff, SocketAddr::from(([8, 8, 4, 4], 9))).to_string());
    add("channel 0x5000", client.bind_channel(0x5000, SocketAddr::from(([8, 8, 4, 5], 9))).to_string());
    add("channel of loopback", client.bind_channel(0x4001, SocketAddr::from(([127, 0, 0, 1], 9))).to_string());
    for seconds in [300_u32, 7_200, 0] {
        let refreshed = client.request(REFRESH, vec![(LIFETIME, seconds.to_be_bytes().to_vec())]);
        add(&format!("refresh {seconds}"), lifetime(&refreshed));
    }
    for port in [port, 5_349, 4_445] {
        let connected = TcpStream::connect(SocketAddr::from((SERVER, port))).is_ok();
        add(&format!("TCP {port}"), if connected { "open" } else { "closed" }.to_owned());
    }
    answers
}

/// Writes the file and the certificate.
fn write(golden: &Golden, folder: &Path, certificates: &Certificates) {
    fs::copy(certificates.cert(), folder.join("cert.pem")).unwrap();
    fs::copy(certificates.key(), folder.join("key.pem")).unwrap();
    let file = folder.join("turnserver.conf");
    fs::write(&file, golden.lines.replace("{folder}", folder.to_str().unwrap())).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o640)).unwrap();
}

/// Two clients of coturn's relay to each other through the server.
fn uclient(port: u16) -> Output {
    let mut uclient = Command::new("turnutils_uclient");
    uclient.args(["-u", "alice", "-W", SECRET, "-y", "-c", "-m", "2", "-n", "20", "-l", "170", "-z", "10"]);
    // With Send indications: it binds channel numbers that RFC 8656 has removed.
    uclient.args(["-s", "-L", &CLIENT.to_string(), "-p", &port.to_string(), &SERVER.to_string()]).output().unwrap()
}

/// Compares truetick with Debian's coturn on one file.
fn compare(golden: &Golden) {
    let Some(coturn) = require(Requirement::Program, find_program("turnserver", "coturn")) else { return };
    let link = |side: &str| {
        [
            format!("-n {{{side}}} link add d0 type veth peer name d1"),
            format!("-n {{{side}}} addr add {SERVER}/24 dev d0"),
            format!("-n {{{side}}} addr add {CLIENT}/24 dev d0"),
            format!("-n {{{side}}} link set d0 up"),
            format!("-n {{{side}}} link set d1 up"),
            format!("-n {{{side}}} route add default dev d0"),
        ]
    };
    let lines = [link("c"), link("t")].concat();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let Some(network) = require(Requirement::NetNamespace, Network::make(&["c", "t"], &lines)) else { return };
    let certificates = Certificates::new();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let truetick = folders[1].path().join("turnserver");
    symlink(program(), &truetick).unwrap();
    let run = |side: usize, program: &Path| {
        let folder = folders[side].path();
        write(golden, folder, &certificates);
        network.on(side, || {
            let _started = Started::new(program, folder, golden.port);
            let answers = answers(golden.port);
            let relayed = (side == 1).then(|| uclient(golden.port));
            (answers, relayed)
        })
    };
    let ((theirs, _), (ours, relayed)) = (run(0, &coturn), run(1, &truetick));
    let differences: Vec<_> = theirs
        .iter()
        .zip(&ours)
        .filter(|(theirs, ours)| theirs.1 != ours.1)
        .map(|(theirs, ours)| (theirs.0.as_str(), theirs.1.as_str(), ours.1.as_str()))
        .collect();
    let listed: Vec<_> =
        golden.differences.iter().map(|(question, theirs, ours, _)| (*question, *theirs, *ours)).collect();
    assert_eq!(differences, listed, "all answers of truetick: {ours:#?}");
    let report = relayed.unwrap();
    let text = String::from_utf8_lossy(&report.stdout);
    assert!(report.status.success() && text.contains("tot_send_msgs=40, tot_recv_msgs=40"), "{text}");
}

#[test]
fn synapse_starts_from_its_file_of_coturn() {
    compare(&SYNAPSE);
}

#[test]
fn jitsi_starts_from_its_file_of_coturn() {
    compare(&JITSI);
}

#[test]
fn bigbluebutton_starts_from_its_file_of_coturn() {
    compare(&BIGBLUEBUTTON);
}

#[test]
fn nextcloud_starts_from_its_file_of_coturn() {
    compare(&NEXTCLOUD);
}

#[test]
fn matrix_docker_ansible_starts_from_its_file_of_coturn() {
    compare(&MATRIX_DOCKER_ANSIBLE);
}
