//! Version and cipher suite of a connection over TLS.

use rustls::CipherSuite;

use super::{Connection, Layer};
use crate::stream::tls::TlsSuite;

/// The suites of TLS 1.3.
const SUITES: [(CipherSuite, &str); 3] = [
    (CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384"),
    (CipherSuite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256"),
    (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256"),
];

/// The version and the cipher suite of a connection over TLS, by the names that OpenSSL has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsNames {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// `ECDHE-RSA-AES256-GCM-SHA384`, `TLS_AES_256_GCM_SHA384`.
    pub cipher: &'static str,
}

impl Connection {
    /// Returns version and cipher suite of TLS after the handshake; `None` without TLS.
    #[must_use]
    pub fn tls_names(&self) -> Option<TlsNames> {
        let Layer::Tls(tls) = &self.layer else { return None };
        let suite = tls.negotiated_cipher_suite()?;
        if suite.tls13().is_some() {
            let (_, cipher) = SUITES.into_iter().find(|(known, _)| *known == suite.suite())?;
            return Some(TlsNames { version: "TLSv1.3", cipher });
        }
        let known = TlsSuite::ALL.into_iter().find(|known| known.suite() == suite)?;
        Some(TlsNames { version: "TLSv1.2", cipher: known.name() })
    }
}
