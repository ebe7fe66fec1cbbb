//! Who is measured over veth devices.

use std::net::SocketAddrV4;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::MANY;
use super::ground::{Ground, HTTP, LISTEN, PEERS, RELAY, attach, ip};
use crate::client::{PASSWORD, REALM, USER};
use crate::process::Process;
use crate::rivals::{Contestant, Places, STOCK, coturn};
use crate::stage::{Generator, Running};

/// A server at the one place that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// truetick with `--data-path native`.
    Kernel,
    /// truetick with sockets alone.
    Sockets,
    Coturn,
    /// One `recvfrom` and one `sendto` for a datagram.
    Echo,
    /// The smallest program that sends datagrams back: the floor of the kernel path.
    XdpEcho,
}

pub(super) const ALL: [Subject; 5] =
    [Subject::Kernel, Subject::Sockets, Subject::Coturn, Subject::Echo, Subject::XdpEcho];

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kernel => "truetick_kernel",
            Self::Sockets => "truetick",
            Self::Coturn => "coturn",
            Self::Echo => "echo",
            Self::XdpEcho => "xdp_echo",
        }
    }

    /// Name of its XDP program.
    pub(super) fn program(self) -> Option<&'static str> {
        match self {
            Self::Kernel => Some("paths"),
            Self::XdpEcho => Some("xdp_echo"),
            Self::Sockets | Self::Coturn | Self::Echo => None,
        }
    }

    /// Why it has no run with so many flows.
    pub(super) fn refusal(self, flows: usize) -> Option<&'static str> {
        (flows == MANY && matches!(self, Self::Echo | Self::XdpEcho)).then_some("no allocations")
    }

    /// As the others of the generator have it: what it relays.
    fn kind(self) -> Contestant {
        match self {
            Self::Kernel | Self::Sockets => Contestant::Truetick,
            Self::Coturn => Contestant::Coturn,
            Self::Echo | Self::XdpEcho => Contestant::Echo,
        }
    }

    pub(super) fn version(self, places: &Places) -> String {
        match self {
            Self::XdpEcho => "tools/rivals/turn/rivals/xdp_echo".to_owned(),
            Self::Kernel | Self::Sockets | Self::Coturn | Self::Echo => {
                self.kind().version(places).unwrap_or_else(|reason| format!("absent: {reason}"))
            }
        }
    }

    /// Starts it in the namespace of the server, and waits until it answers.
    pub(super) fn start(self, places: &Places, ground: &Ground, generator: &mut Generator) -> anyhow::Result<Running> {
        let own = std::env::current_exe()?;
        // What an earlier program may have left.
        let _ = ip(&format!("-n {} link set dev ttsc xdp off", ground.server));
        let (listen, relay) = (format!("{LISTEN}:{}", places.port), RELAY.to_string());
        let command = match self {
            Self::Kernel | Self::Sockets => {
                let mut command = Command::new(&places.truetick);
                command.args(["turn", "--workers", "1", "--allocations-max", "16384", "--user-share-percent", "100"]);
                command.args(["--user-allocations-per-second", "0", "--realm", REALM, "--allow-peer", PEERS]);
                command.args(["--listen", &listen, "--relay-ip", &relay, "--http", HTTP]);
                command.args(["--data-path", if self == Self::Kernel { "native" } else { "off" }]);
                command.args(["--user", &format!("{USER}:{PASSWORD}")]);
                command
            }
            Self::Coturn => {
                let mut command = coturn(Path::new("turnserver"), &LISTEN.to_string(), places.port, STOCK);
                command.args(["-E", &relay]);
                command
            }
            Self::Echo => {
                let mut command = Command::new(own);
                command.args(["echo", &listen]);
                command
            }
            Self::XdpEcho => {
                let object = ground.xdp_echo.as_ref().context("clang did not build it")?;
                attach(&ground.server, "ttsc", object, "xdp")?;
                let mut command = Command::new("sleep");
                command.arg("infinity");
                command
            }
        };
        let mut within = Command::new("ip");
        within.args(["netns", "exec", &ground.server]).arg(command.get_program()).args(command.get_args());
        let process = Process::start(within, Some(ground.server_cpu()))?;
        let address = SocketAddrV4::new(LISTEN, places.port);
        generator.wait_for(Running { contestant: self.kind(), process, address })
    }
}
