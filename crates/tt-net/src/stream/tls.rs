//! A certificate and the rules of TLS (RFC 8489 section 6.2.3, RFC 7443).

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection};

/// RFC 7443 section 3: the protocols that a client may name. One that names others only is refused.
const ALPN: [&[u8]; 2] = [b"stun.turn", b"stun.nat-discovery"];

/// A certificate with its key, ready to serve connections: TLS 1.2 and 1.3, only suites with forward secrecy.
#[derive(Clone)]
pub struct TlsIdentity(Arc<ServerConfig>);

/// Why a certificate or its key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The text holds no certificate in PEM.
    NoCertificate,
    /// The text holds no private key in PEM.
    NoKey,
    /// They do not belong together, or are of a kind that is not supported; what rustls says.
    Unusable(String),
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("there is no certificate in it (PEM, BEGIN CERTIFICATE)"),
            Self::NoKey => f.write_str("there is no private key in it (PEM, BEGIN PRIVATE KEY)"),
            Self::Unusable(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for TlsFault {}

impl TlsIdentity {
    /// From a chain of certificates, the server's own first, and its private key, both as PEM.
    ///
    /// # Errors
    /// [`TlsFault`].
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsFault> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or(TlsFault::NoCertificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsFault::NoKey)?;
        let unusable = |error: rustls::Error| TlsFault::Unusable(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12]);
        let mut config =
            builder.map_err(unusable)?.with_no_client_auth().with_single_cert(chain, key).map_err(unusable)?;
        config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
        // Tickets hold the sessions, at the clients: a client that returns costs no signature, and here no memory. Their
        // key belongs to this certificate: with another one every client checks that one.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(unusable)?;
        config.send_tls13_tickets = 1;
        Ok(Self(Arc::new(config)))
    }

    /// The server's side of a new connection.
    pub(crate) fn begin(&self) -> Result<ServerConnection, rustls::Error> {
        let mut connection = ServerConnection::new(Arc::clone(&self.0))?;
        // It is given messages only when it has sent the ones before: the connection's queue is the bound.
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}
