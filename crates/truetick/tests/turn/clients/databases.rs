//! Users, secrets and peers in databases that coturn's `turnadmin` writes.

mod postgres;
mod redis;
mod sqlite;
mod statistics;

use std::net::SocketAddr;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use testkit::turn_client::Client;
use testkit::{Requirement, find_program, require};

use crate::operators::operated::{Operated, TOKEN, peer, relays, wait};

/// The default realm of truetick.
const REALM: &str = "truetick";

/// `turnadmin` with the option that names a database.
struct TurnAdmin {
    database: [String; 2],
}

impl TurnAdmin {
    /// Skips the test without turnadmin.
    fn require(option: &str, database: &str) -> Option<Self> {
        require(Requirement::Program, find_program("turnadmin", "coturn"))?;
        Some(Self { database: [option.to_owned(), database.to_owned()] })
    }

    fn run(&self, arguments: &[&str]) {
        self.run_in(REALM, arguments);
    }

    fn run_in(&self, realm: &str, arguments: &[&str]) {
        let mut admin = Command::new("turnadmin");
        let output = admin.args(&self.database).args(["-r", realm]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Adds a user whose password is the name and `-secret`.
    fn add(&self, name: &str) {
        self.run(&["-a", "-u", name, "-p", &format!("{name}-secret")]);
    }
}

/// A credential of the TURN REST API, from its text: base64 of HMAC-SHA1 of the name.
fn limited(server: &Operated, secret: &str, id: &str) -> Client {
    let expiry = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 600;
    let name = format!("{expiry}:{id}");
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(name.as_bytes());
    Client::new(server.listen, &name, &STANDARD.encode(mac.finalize().into_bytes()))
}

fn metric(server: &Operated, series: &str) -> Option<f64> {
    let text = server.ask("GET", "/metrics", None).body;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("truetick_turn_database_{series} ")).map(str::to_owned));
    line.map(|value| value.parse().unwrap())
}

/// Waits until the database could not be read, for this reason.
fn wait_failed(server: &Operated, kind: &str) {
    let series = format!("reads_total{{result=\"{kind}\"}}");
    wait(&series, || metric(server, &series).is_some_and(|count| count > 0.0));
}

/// What every database must do: `admin` writes, clients log in and out, and metrics count.
fn follows_turnadmin(server: &Operated, admin: &TurnAdmin, kind: &str) {
    assert!(server.client("carol").log_in().is_ok(), "a user from before the start");
    assert!(server.client("ann").log_in().is_ok(), "a user of the file");
    assert_eq!(Client::new(server.listen, "carol", "carol").log_in(), Err(401));
    assert_eq!(server.client("dave").log_in(), Err(401));
    admin.add("dave");
    wait("dave logs in", || server.client("dave").log_in().is_ok());
    // The file counts before the database.
    admin.run(&["-a", "-u", "ann", "-p", "another"]);
    admin.run(&["-d", "-u", "carol"]);
    wait("carol is gone", || server.client("carol").log_in() == Err(401));
    assert_eq!(Client::new(server.listen, "ann", "another").log_in(), Err(401));
    assert!(server.client("ann").log_in().is_ok() && server.client("dave").log_in().is_ok());

    assert_eq!(limited(server, "north", "one").log_in(), Err(401));
    admin.run(&["-s", "north"]);
    wait("the first secret", || limited(server, "north", "one").log_in().is_ok());
    admin.run(&["-s", "south"]);
    wait("the second secret", || limited(server, "south", "two").log_in().is_ok());
    assert!(limited(server, "north", "three").log_in().is_ok());
    assert_eq!(limited(server, "sout", "four").log_in(), Err(401));
    admin.run(&["-X", "north"]);
    wait("the first secret is gone", || limited(server, "north", "five").log_in() == Err(401));
    assert!(limited(server, "south", "six").log_in().is_ok());
    assert_eq!((metric(server, "users"), metric(server, "secrets")), (Some(2.0), Some(1.0)));
    assert_eq!(metric(server, &format!("up{{kind=\"{kind}\"}}")), Some(1.0));
    assert!(metric(server, "age_seconds").is_some_and(|age| age < 60.0));
    assert!(!server.log().contains("south") && !server.log().contains("-secret"), "{}", server.log());
}

/// A realm of the configuration that has neither listeners nor origins. Clients that wait make many allocations.
const FURTHER: &str = "quotas = { user_allocations_per_second = 0 }\n[[turn.realms]]\nname = \"b.example\"\nuser = [\"eve:eve-secret\"]\n";
const ORIGIN: &str = "https://b.example";

/// Users, secrets, options and origins of a realm after the default one, which `admin` writes.
fn follows_turnadmin_in_realms(server: &Operated, admin: &TurnAdmin) {
    let other = |name: &str| server.client(name).of_origin(ORIGIN);
    assert_eq!(other("ann").challenge(), REALM, "no origin selects the other realm yet");
    admin.run_in("b.example", &["-O", "-o", ORIGIN]);
    // Each client may come to another worker, and workers take a new configuration one after the other.
    wait("the origin selects the realm", || (0..16).all(|_| other("ann").challenge() == "b.example"));
    assert!(other("eve").log_in().is_ok(), "a user of the configuration");
    assert_eq!(other("carol").log_in(), Err(401), "a user of the default realm");

    admin.run_in("b.example", &["-a", "-u", "dave", "-p", "dave-secret"]);
    wait("dave logs in", || other("dave").log_in().is_ok());
    assert_eq!(server.client("dave").log_in(), Err(401), "not in the default realm");
    admin.run_in("b.example", &["-a", "-u", "eve", "-p", "another"]);
    admin.run_in("b.example", &["-s", "east"]);
    let limited_in = |id: &str| limited(server, "east", id).of_origin(ORIGIN);
    wait("the secret", || limited_in("one").log_in().is_ok());
    assert_eq!(limited(server, "east", "two").log_in(), Err(401), "not in the default realm");
    assert!(other("eve").log_in().is_ok(), "the configuration counts before the database");

    admin.run_in("b.example", &["-g", "--user-quota=1"]);
    let mut live = other("dave");
    live.allocate().unwrap();
    wait("the quota of the realm", || other("dave").log_in() == Err(486));
    assert!(server.client("carol").log_in().is_ok() && other("eve").log_in().is_ok());

    // As in coturn, a total is that of its realm alone.
    admin.run(&["-g", "--total-quota=1"]);
    let mut ann = server.client("ann");
    wait("the total of the default realm", || {
        ann.refresh(0);
        ann.allocate().is_ok() && server.client("carol").log_in() == Err(486)
    });
    assert!(other("eve").log_in().is_ok(), "another realm");
    ann.refresh(0);
    assert!(server.client("carol").log_in().is_ok(), "an allocation of another realm does not count");

    // A reload keeps what the database has.
    assert_eq!(server.ask("POST", "/api/v1/reload", Some(TOKEN)).status, 200);
    // A busy worker may take it later than the answer says. What a reload has lost does not come back.
    wait("the quota after a reload", || other("dave").log_in() == Err(486));
    admin.run_in("b.example", &["-d", "-u", "dave"]);
    wait("dave is gone", || other("dave").log_in() == Err(401));
    assert_eq!(live.refresh(600), 0, "what lives goes on");
    admin.run_in("b.example", &["-X", "east"]);
    wait("the secret is gone", || limited_in("three").log_in() == Err(401));
    admin.run_in("b.example", &["-R", "-o", ORIGIN]);
    wait("the origin is gone", || other("ann").challenge() == REALM);
}

/// Peers of the tests are on loopback.
const OWN_HOST: &str = "allow_own_host = [\"127.0.0.0/8\"]\n";
/// A row of `allowed_peer_ip` or `denied_peer_ip`: `allowed` or `denied`, the realm, and the range.
type PeerRow = (&'static str, &'static str, &'static str);

/// Rows of peers from before the start.
const PEER_ROWS: [PeerRow; 9] = [
    ("denied", "", "11.0.0.1"),
    ("denied", REALM, "11.0.0.2"),
    ("denied", "b.example", "11.0.0.3"),
    ("denied", "elsewhere", "11.0.0.4"),
    ("denied", "b.example", "11.0.0.5-11.0.0.9"),
    ("allowed", "", "11.0.0.7"),
    ("allowed", "", "10.0.0.1"),
    ("allowed", REALM, "10.0.0.2"),
    ("allowed", "b.example", "10.0.0.3"),
];
/// Peers, and the realms whose users reach them: the default one, and `b.example`.
const REACHED: [(&str, [bool; 2]); 10] = [
    ("11.0.0.1", [false, false]),
    ("11.0.0.2", [false, true]),
    ("11.0.0.3", [true, false]),
    ("11.0.0.4", [true, true]),
    ("11.0.0.6", [true, false]),
    ("11.0.0.7", [true, true]),
    ("10.0.0.1", [true, true]),
    ("10.0.0.2", [true, false]),
    ("10.0.0.3", [false, true]),
    ("10.0.0.4", [false, false]),
];

/// Peers of the default realm, of `b.example` and of every realm. `add` and `delete` change a row. `dave` is a user of
/// `b.example`, with [`ORIGIN`]; [`PEER_ROWS`] are there.
fn peers_follow_realms(server: &Operated, add: &dyn Fn(PeerRow), delete: &dyn Fn(PeerRow)) {
    let mut clients = [server.client("ann"), server.client("dave").of_origin(ORIGIN)];
    let peer = peer();
    let (at, ip) = (peer.local_addr().unwrap(), peer.local_addr().unwrap().ip().to_string());
    for client in &mut clients {
        client.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4000, at), 0);
    }
    for (ip, reached) in REACHED {
        let peer = SocketAddr::new(ip.parse().unwrap(), 9);
        let codes = clients.each_mut().map(|client| client.permit(peer));
        assert_eq!(codes, reached.map(|is_reached| if is_reached { 0 } else { 403 }), "{ip}");
    }
    let [ann, dave] = &mut clients;
    relays(ann, 0x4000, &peer, b"in the default realm");
    relays(dave, 0x4000, &peer, b"in the other realm");
    let permissions = |user: &str| {
        let rows = server.ask("GET", &format!("/api/v1/turn/allocations?user={user}"), Some(TOKEN)).json();
        rows["list"][0]["permissions"].as_u64().unwrap()
    };
    let before = (permissions("ann"), permissions("dave"));
    let denied = ("denied", "b.example", "127.0.0.2");
    assert_eq!(ip, denied.2);
    add(denied);
    wait("the permission has ended", || permissions("dave") == before.1 - 1);
    assert_eq!(permissions("ann"), before.0, "that of the other realm stays");
    assert_eq!((ann.permit(at), dave.permit(at)), (0, 403));
    assert_eq!((ann.bind_channel(0x4000, at), dave.bind_channel(0x4000, at)), (0, 403));
    dave.send_channel(0x4000, b"denied");
    // The worker answers after it has handled what came before.
    assert_eq!(dave.refresh(600), 0);
    relays(ann, 0x4000, &peer, b"still allowed");
    wait("the rule in the metrics", || server.ask("GET", "/metrics", None).body.contains("\"deny 127.0.0.2/32\""));
    assert_eq!(server.ask("POST", "/api/v1/reload", Some(TOKEN)).status, 200);
    assert_eq!((ann.permit(at), dave.permit(at)), (0, 403), "a reload keeps the rules of realms");
    delete(denied);
    wait("the rule is gone", || dave.permit(at) == 0);
    relays(dave, 0x4000, &peer, b"allowed again");
    let for_every = ("denied", "", denied.2);
    add(for_every);
    wait("a rule for every realm", || (ann.permit(at), dave.permit(at)) == (403, 403));
    delete(for_every);
    wait("the rule for every realm is gone", || (ann.permit(at), dave.permit(at)) == (0, 0));
}

/// Two allocations of each user, in realms that the configuration does not name, too.
const NO_FURTHER: &str = "quotas = { user_allocations = 2, user_allocations_per_second = 0 }\n";

/// Realms that only origins in the database name: they come, have users and options, and go.
fn origins_add_realms(server: &Operated, admin: &TurnAdmin) {
    let other = |name: &str| server.client(name).of_origin(ORIGIN);
    let challenge = |origin: &str| server.client("ann").of_origin(origin).challenge();
    assert_eq!(challenge(ORIGIN), REALM, "no origin selects a realm yet");
    admin.run_in("c.example", &["-a", "-u", "dave", "-p", "dave-secret"]);
    admin.run_in("c.example", &["-O", "-o", ORIGIN]);
    wait("the origin selects the realm", || challenge(ORIGIN) == "c.example");
    wait("dave logs in", || other("dave").log_in().is_ok());
    assert_eq!(other("ann").log_in(), Err(401), "a user of the default realm");
    assert_eq!(server.client("dave").log_in(), Err(401), "not in the default realm");
    assert!(server.client("ann").log_in().is_ok());

    let mut live = [other("dave"), other("dave")];
    live.iter_mut().for_each(|client| assert!(client.allocate().is_ok()));
    assert_eq!(other("dave").log_in(), Err(486), "the quota of the configuration");
    let listed = || {
        let rows = server.ask("GET", "/api/v1/turn/allocations?realm=c.example", Some(TOKEN)).json();
        rows["list"].as_array().unwrap().len()
    };
    assert_eq!(listed(), 2);
    admin.run_in("c.example", &["-g", "--user-quota=3"]);
    wait("the quota of the realm", || other("dave").log_in().is_ok());
    admin.run_in("c.example", &["-s", "east"]);
    wait("the secret", || limited(server, "east", "one").of_origin(ORIGIN).log_in().is_ok());
    assert_eq!(server.ask("POST", "/api/v1/reload", Some(TOKEN)).status, 200);
    assert!(other("dave").log_in().is_ok() && limited(server, "east", "two").of_origin(ORIGIN).log_in().is_ok());
    assert_eq!(challenge(ORIGIN), "c.example", "a reload keeps what the database has");

    // Another realm comes, and the first one goes: what lives goes on, and no user logs in.
    admin.run_in("d.example", &["-a", "-u", "dave", "-p", "dave-secret"]);
    admin.run_in("d.example", &["-O", "-o", "https://d.example"]);
    wait("the other realm", || challenge("https://d.example") == "d.example");
    wait("its user", || server.client("dave").of_origin("https://d.example").log_in().is_ok());
    admin.run_in("c.example", &["-R", "-o", ORIGIN]);
    wait("the origin is gone", || challenge(ORIGIN) == REALM);
    let logs_in = || {
        let mut client = server.client("dave");
        client.challenge();
        client.log_in_as("c.example", "dave", "dave-secret");
        client.log_in()
    };
    wait("every worker refuses its users", || logs_in() == Err(401));
    assert_eq!(listed(), 2);
    admin.run_in("c.example", &["-O", "-o", ORIGIN]);
    wait("the realm is back", || challenge(ORIGIN) == "c.example" && other("dave").log_in().is_ok());
    assert_eq!(challenge("https://d.example"), "d.example");
    for client in &mut live {
        wait("the client's allocation goes on", || {
            // The realm is back on a worker a moment before its secret, and with that older nonces are stale.
            let code = (client.challenge() == "c.example").then(|| client.refresh(600));
            assert!(matches!(code, None | Some(0 | 438)), "{code:?}");
            code == Some(0)
        });
    }
}
