//! What is taken over TCP and TLS.

use std::net::SocketAddr;

use anyhow::ensure;

use super::{Args, TurnConfig, either, named};
use crate::config::TurnSection;
use crate::turn::streams::CertificateFiles;

/// The port of STUN and TURN over TLS. RFC 8656 section 3.
const TLS_PORT: u16 = 5349;

impl TurnConfig {
    pub(super) fn set_streams(&mut self, args: &Args, section: &TurnSection) -> anyhow::Result<()> {
        let no_tcp = args.no_tcp || (section.no_tcp && args.listen_tcp.is_empty());
        self.listen_tcp = either(&args.listen_tcp, &section.listen_tcp).to_vec();
        let listen_tcp = || named(section, "listen_tcp", false, 0);
        ensure!(!no_tcp || self.listen_tcp.is_empty(), "{} contradicts --no-tcp", listen_tcp());
        self.tcp_beside_udp = !no_tcp && self.listen_tcp.is_empty();
        self.listen_tls = either(&args.listen_tls, &section.listen_tls).to_vec();
        let files = (args.cert.as_ref().or(section.cert.as_ref()), args.key.as_ref().or(section.key.as_ref()));
        let named = |key, is_flag: bool| named(section, key, is_flag, 0);
        self.certificate = match files {
            (Some(cert), Some(key)) => Some(CertificateFiles { cert: cert.clone(), key: key.clone() }),
            (None, None) => None,
            (Some(_), None) => anyhow::bail!("{} without --key", named("cert", args.cert.is_some())),
            (None, Some(_)) => anyhow::bail!("{} without --cert", named("key", args.key.is_some())),
        };
        let has_certificate = self.certificate.is_some();
        let listen_tls = || named("listen_tls", !args.listen_tls.is_empty());
        ensure!(has_certificate || self.listen_tls.is_empty(), "{} without --cert and --key", listen_tls());
        let is_default = args.listen.is_empty() && section.listen.is_empty();
        if has_certificate && self.listen_tls.is_empty() && is_default {
            self.listen_tls = self.listen.iter().map(|addr| SocketAddr::new(addr.ip(), TLS_PORT)).collect();
        }
        self.streams = section.streams.limits();
        Ok(())
    }
}
