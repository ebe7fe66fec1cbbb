//! The way to a host: its name, a connection, its certificate.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hyper::Uri;
use tokio::net::TcpStream;
use tt_meter::Clock;

use super::certificate;
use super::report::{Finding, Report};
use super::step::Step;
use crate::dial::{Target, Wire};

const RESOLVE_MAX: Duration = Duration::from_secs(5);
const CONNECT_MAX: Duration = Duration::from_secs(10);
const TLS_MAX: Duration = Duration::from_secs(10);

/// Takes the three steps to the host of `uri`: whether it can be spoken to.
///
/// # Errors
/// Standard output is gone, or the address is none.
pub(super) async fn reach(report: &mut Report<'_>, uri: &Uri, clock: Clock) -> anyhow::Result<bool> {
    let target = Target::of(uri)?;
    let of = format!("{}:{}", target.host, target.port);
    report.begin(Step::Resolve, &of);
    let (finding, addresses) = resolve(&target, report.left(RESOLVE_MAX)).await;
    if !report.end(Step::Resolve, &of, &finding)? {
        return Ok(false);
    }
    report.begin(Step::Connect, &of);
    let (finding, stream) = connect(&addresses, report.left(CONNECT_MAX)).await;
    report.end(Step::Connect, &of, &finding)?;
    let Some(stream) = stream else { return Ok(false) };
    report.begin(Step::Tls, &of);
    if !target.is_tls {
        let finding = Finding::skipped(format!("{} has no TLS", uri.scheme_str().unwrap_or_default()));
        return Ok(report.end(Step::Tls, &of, &finding)?);
    }
    let spoken = tokio::time::timeout(report.left(TLS_MAX), target.speak(stream, clock)).await;
    let finding = match &spoken {
        Ok(Ok((Wire::Tls(stream), _))) => certificate::shown(stream.get_ref().1),
        Ok(Ok((Wire::Plain(_), _))) => Finding::skipped("plain"),
        Ok(Err(error)) => certificate::refused(error, &target.host),
        Err(_) => Finding::failed(
            "no answer to the TLS handshake",
            "whatever listens there speaks no TLS, or a proxy on the way swallows it: look at the port of the address",
        ),
    };
    Ok(report.end(Step::Tls, &of, &finding)?)
}

async fn resolve(target: &Target, most: Duration) -> (Finding, Vec<SocketAddr>) {
    if let Ok(ip) = target.host.parse::<IpAddr>() {
        return (Finding::skipped("an address needs no resolution"), vec![SocketAddr::new(ip, target.port)]);
    }
    let looked_up = tokio::time::timeout(most, tokio::net::lookup_host((target.host.as_str(), target.port))).await;
    let advice = "is the name right? Can this machine resolve any (/etc/resolv.conf, `getent hosts NAME`)?";
    match looked_up.map(|found| found.map(Iterator::collect::<Vec<_>>)) {
        Ok(Ok(found)) if !found.is_empty() => {
            let shown: Vec<String> = found.iter().map(|address| address.ip().to_string()).collect();
            (Finding::ok(shown.join(", ")).fact("addresses", shown), found)
        }
        Ok(Ok(_)) => (Finding::failed("the name has no address", advice), Vec::new()),
        Ok(Err(error)) => (Finding::failed(error.to_string(), advice), Vec::new()),
        Err(_) => (Finding::failed("no answer from the name's servers", advice), Vec::new()),
    }
}

/// The first of `addresses` that takes a connection.
async fn connect(addresses: &[SocketAddr], most: Duration) -> (Finding, Option<TcpStream>) {
    let mut failed = Finding::failed("no time is left", "give it more: --seconds");
    let share = most / addresses.len().max(1) as u32;
    for address in addresses {
        match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let finding = Finding::ok(address.ip().to_string()).fact("address", address.to_string());
                return (finding, Some(stream));
            }
            Ok(Err(error)) => failed = Finding::failed(format!("{address}: {error}"), advice(&error)),
            Err(_) => {
                failed = Finding::failed(
                    format!("{address}: no answer"),
                    "packets are lost on the way: a firewall here, or the venue does not serve this network or country",
                );
            }
        }
    }
    (failed, None)
}

fn advice(error: &io::Error) -> &'static str {
    if error.kind() == ErrorKind::ConnectionRefused {
        "nothing listens there, or a firewall refuses: look at host and port of the address"
    } else {
        "this machine has no way there: look at its network (`ip route get ADDRESS`)"
    }
}
