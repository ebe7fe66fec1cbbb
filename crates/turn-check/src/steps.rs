//! The steps of a check.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::RootCertStore;
use tt_turn::codec::{Method, attribute};
use zeroize::Zeroizing;

use crate::certificate;
use crate::client::{Attribute, Client, Login, NoResponse};
use crate::link::Link;
use crate::report::{Outcome, Report, Row};
use crate::target::{Target, Transport};

/// Binding requests whose time is measured.
const BINDINGS: u32 = 10;
/// Time after which a relayed message is lost.
const LOST_AFTER: Duration = Duration::from_millis(500);
/// Messages that are lost in a row until the rest is not sent.
const GIVE_UP_AFTER: u32 = 10;
/// A certificate that expires sooner fails.
const DAYS_MIN: i64 = 7;
/// The first channel number, RFC 8656 section 12.
const CHANNEL_MIN: u16 = 0x4000;
const UDP: [u8; 4] = [17, 0, 0, 0];
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;
/// Peers that a relay must not reach: private networks, the metadata service of clouds, its own host.
const PRIVATE: [Ipv4Addr; 4] = [
    Ipv4Addr::new(10, 255, 255, 254),
    Ipv4Addr::new(192, 168, 255, 254),
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::LOCALHOST,
];

/// What a check needs besides the server.
pub struct Options {
    /// The credential; without one nothing is relayed.
    pub login: Option<Login>,
    /// Authorities of certificates.
    pub roots: Arc<RootCertStore>,
    /// Messages to relay over each transport.
    pub messages: u32,
}

/// Checks `target`.
#[must_use]
pub fn check(target: &Target, options: &Options) -> Report {
    let mut report = Report::default();
    for (transport, port) in &target.transports {
        let mut steps = Steps { target, transport: *transport, port: *port, options, report: &mut report };
        if steps.connect() && steps.unauthenticated() {
            steps.authenticated();
        }
    }
    report
}

/// The steps over one transport.
struct Steps<'a> {
    target: &'a Target,
    transport: Transport,
    port: u16,
    options: &'a Options,
    report: &'a mut Report,
}

impl<'a> Steps<'a> {
    fn row(&self, check: &'static str, outcome: Outcome, text: impl Into<String>) -> Row {
        Row::new(self.transport, check, outcome, text)
    }

    fn fail(&mut self, check: &'static str, text: impl Into<String>) {
        let row = self.row(check, Outcome::Failed, text);
        self.report.add(row);
    }

    fn open(&self) -> std::io::Result<Link> {
        Link::open(self.transport, &self.target.host, self.port, &self.options.roots)
    }

    fn client(&self, login: Option<&Login>) -> Result<Client, NoResponse> {
        self.open().map(|link| Client::new(link, login)).map_err(NoResponse::Io)
    }

    /// Connects, and checks the certificate and a Binding.
    fn connect(&mut self) -> bool {
        let link = match self.open() {
            Ok(link) => link,
            Err(error) => {
                self.fail("connect", format!("port {}: {error}", self.port));
                return false;
            }
        };
        if let Some(tls) = link.tls() {
            let row = match certificate::of(tls) {
                Some((issuer, days)) => {
                    let outcome = if days < DAYS_MIN { Outcome::Failed } else { Outcome::Ok };
                    let text = format!("trusted, by {issuer}, {days} days left");
                    Row { days_left: Some(days), ..self.row("certificate", outcome, text) }
                }
                None => self.row("certificate", Outcome::Failed, "trusted, but its dates cannot be read"),
            };
            self.report.add(row);
        }
        match self.binding(&mut Client::new(link, None)) {
            Ok(row) => {
                let is_ok = row.outcome == Outcome::Ok;
                self.report.add(row);
                is_ok
            }
            Err(error) => {
                self.fail("binding", format!("port {}: {error}", self.port));
                false
            }
        }
    }

    fn binding(&self, client: &mut Client) -> Result<Row, NoResponse> {
        let mut times = Vec::new();
        let mut candidate = None;
        for _ in 0..BINDINGS {
            let begun = Instant::now();
            let response = client.ask(Method::Binding, &[])?;
            times.push(begun.elapsed());
            if response.code != 0 {
                return Ok(self.row("binding", Outcome::Failed, format!("error {}", response.code)));
            }
            candidate = response.address(XOR_MAPPED_ADDRESS);
        }
        let Some(candidate) = candidate else {
            return Ok(self.row("binding", Outcome::Failed, "a response without XOR-MAPPED-ADDRESS"));
        };
        let median = median_us(&mut times);
        let text = format!("this client is {candidate}, {} in the median", milliseconds(median));
        let row = self.row("binding", Outcome::Ok, text);
        Ok(Row { candidate: Some(candidate.to_string()), rtt_us_p50: Some(median), ..row })
    }

    /// Allocates without a credential and with a wrong password: both must get 401.
    fn unauthenticated(&mut self) -> bool {
        let without = self.client(None).and_then(|mut client| client.ask(Method::Allocate, &[transport()]));
        let is_ok = self.rejected("no credential", without.map(|response| response.code), UNAUTHORIZED);
        let wrong = self.options.login.as_ref().map(|login| {
            let password = Zeroizing::new(format!("{}x", login.password.as_str()));
            Login { name: login.name.clone(), password }
        });
        let Some(wrong) = wrong else {
            let row = self.row("wrong password", Outcome::Skipped, "no credential to change");
            self.report.add(row);
            return is_ok;
        };
        let open = self.open().map_err(NoResponse::Io);
        let answer = open.and_then(|link| Client::new(link, Some(&wrong)).request(Method::Allocate, &[transport()]));
        self.rejected("wrong password", answer.map(|response| response.code), UNAUTHORIZED) && is_ok
    }

    fn rejected(&mut self, check: &'static str, answer: Result<u16, NoResponse>, expected: u16) -> bool {
        let (outcome, text) = match answer {
            Ok(code) if code == expected => (Outcome::Ok, format!("rejected with {code}")),
            Ok(0) => (Outcome::Failed, "granted".to_owned()),
            Ok(code) => (Outcome::Failed, format!("{code} instead of {expected}")),
            Err(error) => (Outcome::Failed, error.to_string()),
        };
        let row = self.row(check, outcome, text);
        self.report.add(row);
        outcome == Outcome::Ok
    }

    /// Allocates, asks for private peers and relays.
    fn authenticated(&mut self) {
        let Some(login) = self.options.login.as_ref() else {
            for check in ["allocate", "private peer", "relay"] {
                let row = self.row(check, Outcome::Skipped, "no credential: --secret-file and --user, or --user-file");
                self.report.add(row);
            }
            return;
        };
        let allocated = self.allocate(login);
        let (mut client, relayed) = match allocated {
            Ok(allocated) => allocated,
            Err(text) => return self.fail("allocate", text),
        };
        let row = self.row("allocate", Outcome::Ok, format!("relayed address {relayed}"));
        self.report.add(Row { candidate: Some(relayed.to_string()), ..row });
        self.private_peers(&mut client);
        let row = match self.allocate(login) {
            Ok((mut other, other_relayed)) => {
                let row = self.relay((&mut client, relayed), (&mut other, other_relayed));
                end(&mut other);
                row.unwrap_or_else(|error| self.row("relay", Outcome::Failed, error.to_string()))
            }
            Err(text) => self.row("relay", Outcome::Failed, format!("the second allocation: {text}")),
        };
        self.report.add(row);
        end(&mut client);
    }

    fn allocate(&self, login: &Login) -> Result<(Client, SocketAddr), String> {
        let mut client = self.client(Some(login)).map_err(|error| error.to_string())?;
        let response = client.request(Method::Allocate, &[transport()]).map_err(|error| error.to_string())?;
        match (response.code, response.address(attribute::XOR_RELAYED_ADDRESS)) {
            (0, Some(relayed)) => Ok((client, relayed)),
            (0, None) => Err("a response without XOR-RELAYED-ADDRESS".to_owned()),
            (UNAUTHORIZED, _) => Err("401: the credential is wrong or has expired".to_owned()),
            (code, _) => Err(format!("error {code}")),
        }
    }

    fn private_peers(&mut self, client: &mut Client) {
        let mut granted = Vec::new();
        for (number, ip) in (CHANNEL_MIN..).zip(PRIVATE) {
            // A permission has no port, so that it may be granted for a relayed address of the server.
            let channel = [number.to_be_bytes(), [0; 2]].concat();
            let number = Attribute::Bytes(attribute::CHANNEL_NUMBER, &channel);
            let peer = Attribute::Address(attribute::XOR_PEER_ADDRESS, SocketAddr::from((ip, 9)));
            match client.request(Method::ChannelBind, &[number, peer]) {
                Ok(response) if response.code == FORBIDDEN => {}
                Ok(response) if response.code == 0 => granted.push(ip.to_string()),
                Ok(response) => granted.push(format!("{ip} (error {})", response.code)),
                Err(error) => return self.fail("private peer", error.to_string()),
            }
        }
        let row = match granted.is_empty() {
            true => self.row("private peer", Outcome::Ok, format!("{} peers rejected with 403", PRIVATE.len())),
            false => {
                self.row("private peer", Outcome::Failed, format!("not rejected with 403: {}", granted.join(", ")))
            }
        };
        self.report.add(row);
    }

    /// Sends messages from one allocation to the other.
    fn relay(
        &self,
        (from, from_relayed): (&mut Client, SocketAddr),
        (to, to_relayed): (&mut Client, SocketAddr),
    ) -> Result<Row, NoResponse> {
        for (client, peer) in [(&mut *from, to_relayed), (&mut *to, from_relayed)] {
            let response =
                client.request(Method::CreatePermission, &[Attribute::Address(attribute::XOR_PEER_ADDRESS, peer)])?;
            if response.code != 0 {
                let text = format!("permission for {peer}, a relayed address of the server: error {}", response.code);
                return Ok(self.row("relay", Outcome::Failed, text));
            }
        }
        let (mut times, mut sent, mut lost_in_a_row) = (Vec::new(), 0_u32, 0_u32);
        while sent < self.options.messages && lost_in_a_row < GIVE_UP_AFTER {
            let (payload, begun) = (sent.to_be_bytes(), Instant::now());
            from.send(to_relayed, &payload)?;
            sent += 1;
            if to.receives(&payload, begun + LOST_AFTER)? {
                times.push(begun.elapsed());
                lost_in_a_row = 0;
            } else {
                lost_in_a_row += 1;
            }
        }
        let lost = sent - u32::try_from(times.len()).unwrap_or(sent);
        let median = median_us(&mut times);
        let outcome = if lost == 0 { Outcome::Ok } else { Outcome::Failed };
        let text =
            format!("{lost} of {sent} messages lost, {} from client to client in the median", milliseconds(median));
        let row = self.row("relay", outcome, text);
        Ok(Row { rtt_us_p50: (!times.is_empty()).then_some(median), lost: Some(lost), sent: Some(sent), ..row })
    }
}

/// REQUESTED-TRANSPORT: UDP.
fn transport() -> Attribute<'static> {
    Attribute::Bytes(attribute::REQUESTED_TRANSPORT, &UDP)
}

/// Ends an allocation. Without an answer it ends by itself.
fn end(client: &mut Client) {
    let _ = client.request(Method::Refresh, &[Attribute::Bytes(attribute::LIFETIME, &[0; 4])]);
}

/// Returns the median in microseconds; 0 of no time.
fn median_us(times: &mut [Duration]) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

fn milliseconds(us: u64) -> String {
    format!("{}.{:02} ms", us / 1_000, us % 1_000 / 10)
}
