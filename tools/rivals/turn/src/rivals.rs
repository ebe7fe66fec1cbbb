//! Who is measured: truetick, its rivals and the floor, and how each is started.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::client::{PASSWORD, REALM, USER};

/// Version of crates.io `turn-server`.
pub(crate) const TURN_RS: &str = "4.1.5";
/// Listener ports below the relay ports, and other than the default port, which may be in use.
const PORTS: std::ops::Range<u16> = 18_000..20_000;

/// A server under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    Truetick,
    /// Debian's coturn as its own configuration file has it, with what the comparison needs.
    Coturn,
    /// The same once more, under another name: how far two equals are apart.
    CoturnAgain,
    /// As coturn's documentation advises where one core and UDP is all there is.
    CoturnTuned,
    TurnRs,
    Pion,
    /// No protocol at all: what comes in goes back.
    Echo,
    /// The coturn of `--coturn`, with the settings of [`Self::Coturn`].
    Other,
    /// The same with the settings of [`Self::CoturnTuned`].
    OtherTuned,
    /// The same with one relay socket for all allocations of a thread.
    OtherMultiplexed,
    /// The prototype with one socket for all relay ports; to peers by a raw socket.
    OneRaw,
    /// The same; the source port of a datagram is in its mark, and a program of traffic control writes it.
    OneMark,
    /// The same; to peers by a bounded pool of bound sockets.
    OnePool,
    /// As [`Self::Truetick`], with one socket for all relays of the worker.
    Shared,
}

pub(crate) const ALL: [Contestant; 14] = [
    Contestant::Truetick,
    Contestant::Coturn,
    Contestant::CoturnAgain,
    Contestant::CoturnTuned,
    Contestant::Other,
    Contestant::OtherTuned,
    Contestant::OtherMultiplexed,
    Contestant::TurnRs,
    Contestant::Pion,
    Contestant::Echo,
    Contestant::OneRaw,
    Contestant::OneMark,
    Contestant::OnePool,
    Contestant::Shared,
];

/// Relay ports of one address, 49152 to 65535.
pub(crate) const RELAY_PORTS: u32 = 16_384;

/// Where the programs are, and where they listen.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The port that every server listens on; each has a separate address.
    pub(crate) port: u16,
    /// The workspace that this bench belongs to.
    pub(crate) root: PathBuf,
    /// What was built for the bench.
    pub(crate) built: PathBuf,
    pub(crate) truetick: PathBuf,
    /// Another coturn to measure.
    pub(crate) coturn: Option<PathBuf>,
}

/// Debian's coturn.
const DEBIANS: &str = "turnserver";

impl Contestant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Truetick => "truetick",
            Self::Coturn => "coturn",
            Self::CoturnAgain => "coturn_again",
            Self::CoturnTuned => "coturn_tuned",
            Self::Other => "other_coturn",
            Self::OtherTuned => "other_tuned",
            Self::OtherMultiplexed => "other_multiplexed",
            Self::TurnRs => "turn_rs",
            Self::Pion => "pion",
            Self::Echo => "echo",
            Self::OneRaw => "one_raw",
            Self::OneMark => "one_mark",
            Self::OnePool => "one_pool",
            Self::Shared => "truetick_shared",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|contestant| contestant.name() == name)
    }

    /// Whether it is the coturn of `--coturn`.
    pub(crate) fn is_other(self) -> bool {
        matches!(self, Self::Other | Self::OtherTuned | Self::OtherMultiplexed)
    }

    /// Whether it has one socket for all relay ports. That needs root and runs only when it is asked for.
    pub(crate) fn is_one_socket(self) -> bool {
        matches!(self, Self::OneRaw | Self::OneMark | Self::OnePool | Self::Shared)
    }

    /// A separate address, so that no relay port is in use.
    pub(crate) fn ip(self) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 10 + self as u8, 1)
    }

    /// The addresses of relays for so many allocations, if a server has one port for each.
    fn relay_ips(self, allocations: u32) -> Vec<String> {
        let first = self.ip().to_bits();
        (0..allocations.div_ceil(RELAY_PORTS)).map(|index| Ipv4Addr::from_bits(first + index).to_string()).collect()
    }

    /// The command that starts it, one worker wide, for so many allocations.
    pub(crate) fn command(self, places: &Places, allocations: u32) -> anyhow::Result<Command> {
        let (ip, port) = (self.ip().to_string(), places.port);
        Ok(match self {
            Self::Truetick | Self::Shared => {
                let mut command = Command::new(&places.truetick);
                command.args([
                    "turn",
                    "--workers",
                    "1",
                    "--allocations-max",
                    &allocations.to_string(),
                    "--user-share-percent",
                    "100",
                    "--user-allocations-per-second",
                    "0",
                    "--allow-own-host",
                    "127.0.0.0/8",
                    "--realm",
                    REALM,
                ]);
                command.args(["--listen", &format!("{ip}:{port}")]);
                self.relay_ips(allocations).iter().for_each(|ip| _ = command.args(["--relay-ip", ip]));
                command.args(["--user", &format!("{USER}:{PASSWORD}")]);
                if self == Self::Shared {
                    command.args(["--relay-sockets", "shared"]);
                }
                command
            }
            Self::Coturn | Self::CoturnAgain => coturn(Path::new(DEBIANS), &ip, port, STOCK),
            Self::CoturnTuned => coturn(Path::new(DEBIANS), &ip, port, TUNED),
            Self::Other => coturn(other(places)?, &ip, port, STOCK),
            Self::OtherTuned => coturn(other(places)?, &ip, port, TUNED),
            Self::OtherMultiplexed => {
                let shared = (port + 1).to_string();
                let more = [TUNED, &[MULTIPLEX, "--multiplex-peer-port", &shared, "--udp-gso"]].concat();
                coturn(other(places)?, &ip, port, &more)
            }
            Self::TurnRs => {
                let config = places.built.join(format!("turn-rs-{ip}.toml"));
                std::fs::write(&config, turn_rs_config(&ip, port))?;
                let mut command = Command::new(turn_rs(places));
                command.arg("--config").arg(config);
                command
            }
            Self::Pion => {
                let mut command = Command::new(pion(places));
                command.args([&format!("{ip}:{port}"), &ip, REALM, USER, PASSWORD]);
                command.env("GOMAXPROCS", "1");
                command
            }
            Self::Echo => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["echo", &format!("{ip}:{port}")]);
                command
            }
            Self::OneRaw => self.one_socket("raw", (&ip, port), allocations)?,
            Self::OneMark => self.one_socket("mark", (&ip, port), allocations)?,
            Self::OnePool => self.one_socket("pool", (&ip, port), allocations)?,
        })
    }

    /// The version, if relays can share a socket here: else each would have one, and the measurement another name.
    fn shared_version(self, places: &Places) -> Result<String, String> {
        let mut command = self.command(places, 1).map_err(|error| error.to_string())?;
        let checked = command.arg("--check-config").output().map_err(|error| error.to_string())?;
        let log = String::from_utf8_lossy(&checked.stderr).into_owned();
        if !log.contains("the relays of a worker share a socket") {
            return Err(log.lines().next().unwrap_or("relays share no socket").to_owned());
        }
        first_line(Command::new(&places.truetick).arg("--version"))
    }

    /// The prototype, which is built with this program.
    fn one_socket(self, leaving: &str, (ip, port): (&str, u16), allocations: u32) -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?.with_file_name("one-socket"));
        command.args(["--leaving", leaving, "--listen", &format!("{ip}:{port}")]);
        command.args(["--allocations-max", &allocations.to_string()]);
        self.relay_ips(allocations).iter().for_each(|ip| _ = command.args(["--relay-ip", ip]));
        command.args(["--realm", REALM, "--user", USER, "--password", PASSWORD]);
        Ok(command)
    }

    /// Its version, or why it cannot be had.
    pub(crate) fn version(self, places: &Places) -> Result<String, String> {
        match self {
            Self::Truetick => first_line(Command::new(&places.truetick).arg("--version")),
            Self::Shared => self.shared_version(places),
            Self::Coturn | Self::CoturnAgain | Self::CoturnTuned => coturn_version(Path::new(DEBIANS)),
            Self::Other | Self::OtherTuned => coturn_version(other(places).map_err(|error| error.to_string())?),
            Self::OtherMultiplexed => {
                let program = other(places).map_err(|error| error.to_string())?;
                if !options(program).iter().any(|option| option == MULTIPLEX) {
                    return Err(format!("this coturn has no {MULTIPLEX}"));
                }
                coturn_version(program)
            }
            Self::TurnRs if turn_rs(places).is_file() => Ok(format!("turn-server {TURN_RS} (crates.io, feature udp)")),
            Self::TurnRs => Err("not built: turn-relay prepare".into()),
            Self::Pion => first_line(Command::new(pion(places)).arg("version")),
            Self::Echo => Ok("this program".into()),
            Self::OneRaw | Self::OneMark | Self::OnePool => Ok("prototype of this workspace".into()),
        }
    }
}

/// The option of one relay socket for all allocations.
const MULTIPLEX: &str = "--multiplex-peer";

/// One relay thread.
pub(crate) const STOCK: &[&str] = &["-m", "1"];
/// One thread for listening and relaying, and nothing that UDP relays do without.
const TUNED: &[&str] = &[
    "-m",
    "0",
    "--no-tcp",
    "--no-tls",
    "--no-dtls",
    "--no-tcp-relay",
    "--no-cli",
    "--no-software-attribute",
    "--no-dynamic-ip-list",
    "--no-dynamic-realms",
];
/// What Debian's configuration file sets, apart from the log.
const DEBIAN: &[&str] = &["--no-rfc5780", "--no-stun-backward-compatibility", "--response-origin-only-with-rfc5780"];

/// A port that is free on every address, over UDP and TCP.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    let any = Ipv4Addr::UNSPECIFIED;
    let is_free = |port: &u16| UdpSocket::bind((any, *port)).is_ok() && TcpListener::bind((any, *port)).is_ok();
    PORTS.into_iter().find(is_free).context("no port is free")
}

fn other(places: &Places) -> anyhow::Result<&Path> {
    places.coturn.as_deref().context("no --coturn PATH")
}

fn coturn_version(program: &Path) -> Result<String, String> {
    first_line(Command::new(program).arg("--version")).map(|version| format!("coturn {version}"))
}

/// The long options in the help of the coturn at `program`.
fn options(program: &Path) -> Vec<String> {
    let help = Command::new(program).arg("--help").stdin(Stdio::null()).output();
    let text = help.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let words = text.split(|part: char| part.is_whitespace() || part == ',' || part == '=');
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

/// Starts the coturn at `program`, without what its version no longer has.
pub(crate) fn coturn(program: &Path, ip: &str, port: u16, more: &[&str]) -> Command {
    let mut command = Command::new(program);
    let known = options(program);
    let has = |option: &&&str| !option.starts_with("--") || known.iter().any(|it| it == *option);
    command.args(["-n", "--lt-cred-mech", "--allow-loopback-peers", "--cli-password", PASSWORD]);
    command.args(["-L", ip, "-E", ip, "-p", &port.to_string(), "-r", REALM]);
    command.args(["-u", &format!("{USER}:{PASSWORD}"), "--log-file", "stdout", "--pidfile", "/dev/null"]);
    // The command line interface is a TCP listener on one address; several servers take turns here.
    command.args(["--cli-ip", ip]);
    command.args(DEBIAN.iter().chain(more).filter(has));
    command
}

fn turn_rs_config(ip: &str, port: u16) -> String {
    format!(
        "[server]\nrealm = \"{REALM}\"\nmax-threads = 1\n\n[[server.interfaces]]\ntransport = \"udp\"\n\
         listen = \"{ip}:{port}\"\nexternal = \"{ip}:{port}\"\n\n[auth.static-credentials]\n{USER} = \"{PASSWORD}\"\n"
    )
}

pub(crate) fn turn_rs_root(places: &Places) -> PathBuf {
    places.built.join(format!("turn-server-{TURN_RS}"))
}

fn turn_rs(places: &Places) -> PathBuf {
    turn_rs_root(places).join("bin/turn-server")
}

pub(crate) fn pion(places: &Places) -> PathBuf {
    places.built.join("pion-turn")
}

fn first_line(command: &mut Command) -> Result<String, String> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned).ok_or_else(|| format!("{program} does not report its version"))
}
