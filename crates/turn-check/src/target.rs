//! The server to check.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

const PORT: u16 = 3_478;
const TLS_PORT: u16 = 5_349;

/// How clients reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
}

impl Transport {
    /// Returns the name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        }
    }
}

/// A server, as a URI of RFC 7065: `turn:HOST[:PORT][?transport=udp|tcp]` or `turns:HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host name or address, without brackets.
    pub host: String,
    /// Transports and their ports, in order.
    pub transports: Vec<(Transport, u16)>,
}

/// A text that is no [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetError;

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not turn:HOST[:PORT][?transport=udp|tcp] or turns:HOST[:PORT]")
    }
}

impl Error for TargetError {}

impl FromStr for Target {
    type Err = TargetError;

    /// `turn:` without a transport means UDP and TCP at its port and TLS at port 5349; `turns:` means TLS.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (scheme, rest) = text.split_once(':').ok_or(TargetError)?;
        let (address, query) = rest.split_once('?').map_or((rest, None), |(address, query)| (address, Some(query)));
        let (host, port) = host_and_port(address)?;
        let transports = match (scheme, query) {
            ("turn", None) => {
                let port = port.unwrap_or(PORT);
                vec![(Transport::Udp, port), (Transport::Tcp, port), (Transport::Tls, TLS_PORT)]
            }
            ("turn", Some("transport=udp")) => vec![(Transport::Udp, port.unwrap_or(PORT))],
            ("turn", Some("transport=tcp")) => vec![(Transport::Tcp, port.unwrap_or(PORT))],
            ("turns", None | Some("transport=tcp")) => vec![(Transport::Tls, port.unwrap_or(TLS_PORT))],
            (_, _) => return Err(TargetError),
        };
        Ok(Self { host, transports })
    }
}

fn host_and_port(text: &str) -> Result<(String, Option<u16>), TargetError> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or(TargetError)?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => Some(port.parse().ok().filter(|port| *port != 0).ok_or(TargetError)?),
        None if rest.is_empty() => None,
        None => return Err(TargetError),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(is_host) {
        return Err(TargetError);
    }
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_uris_of_rfc_7065() {
        let target = |text: &str| text.parse::<Target>().map(|target| (target.host, target.transports));
        let (udp, tcp, tls) = (Transport::Udp, Transport::Tcp, Transport::Tls);
        assert_eq!(target("turn:a.org"), Ok(("a.org".into(), vec![(udp, 3_478), (tcp, 3_478), (tls, 5_349)])));
        assert_eq!(target("turn:[::1]:99?transport=udp"), Ok(("::1".into(), vec![(udp, 99)])));
        assert_eq!(target("turn:a.org:99?transport=tcp"), Ok(("a.org".into(), vec![(tcp, 99)])));
        assert_eq!(target("turns:192.0.2.1:443"), Ok(("192.0.2.1".into(), vec![(tls, 443)])));
        for text in
            ["", "turn", "turn:", "stun:a", "turn:a:0", "turn:a:x", "turn:a?transport=sctp", "turn:[::1", "turn:a b"]
        {
            assert_eq!(target(text), Err(TargetError), "{text}");
        }
    }
}
