//! Listeners for TCP and TLS.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::ensure;

use super::TurnConfig;
use crate::section::{TlsVersion, TurnSection};

/// The port of STUN and TURN over TLS. RFC 8656 section 3.
const TLS_PORT: u16 = 5349;

/// The files of a certificate chain, server certificate first, and of its private key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

impl TurnConfig {
    pub(super) fn set_streams(&mut self, section: &TurnSection) -> anyhow::Result<()> {
        let named = |key| section.key_sources.name(key, 0);
        self.listen_tcp.clone_from(&section.listen_tcp);
        let contradicts = section.no_tcp && !self.listen_tcp.is_empty();
        ensure!(!contradicts, "{} contradicts {}", named("listen_tcp"), named("no_tcp"));
        self.tcp_on_udp_ports = !section.no_tcp && self.listen_tcp.is_empty();
        self.listen_tls.clone_from(&section.listen_tls);
        self.proxy_protocol_from.clone_from(&section.proxy_protocol_from);
        let (certs, keys) = (section.cert.len(), section.key.len());
        ensure!(certs == 0 || keys > 0, "{} without --key", named("cert"));
        ensure!(keys == 0 || certs > 0, "{} without --cert", named("key"));
        ensure!(certs == keys, "{}: {certs} files for {keys} private keys", named("cert"));
        let pairs = section.cert.iter().zip(&section.key);
        self.certificates =
            pairs.map(|(cert, key)| CertificateFiles { cert: cert.clone(), key: key.clone() }).collect();
        let has_certificate = !self.certificates.is_empty();
        ensure!(has_certificate || self.listen_tls.is_empty(), "{} without --cert and --key", named("listen_tls"));
        if has_certificate && self.listen_tls.is_empty() && section.listen.is_empty() {
            self.listen_tls = self.listen.iter().map(|addr| SocketAddr::new(addr.ip(), TLS_PORT)).collect();
        }
        self.tls.version_min = section.tls_version_min.map(Into::into).unwrap_or_default();
        self.tls.suites = section.tls_ciphers.iter().map(|cipher| cipher.0).collect();
        ensure!(
            section.tls_ciphers.is_empty() || section.tls_version_min != Some(TlsVersion::V1_3),
            "{} has suites of TLS 1.2, which {} 1.3 turns off: leave one of them out",
            named("tls_ciphers"),
            named("tls_version_min")
        );
        self.streams = section.streams.limits();
        Ok(())
    }
}
