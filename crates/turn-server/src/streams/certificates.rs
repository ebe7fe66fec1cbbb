//! The certificates for TLS, which a reload replaces while connections stay open.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::{ArcSwap, Guard};
use tt_net::stream::{TlsCertificate, TlsIdentity, TlsRules};
use tt_os::{regular_file, secret_file};

/// The files of a certificate chain, server certificate first, and of its private key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// The certificates for new handshakes. A connection keeps the one that it started with.
#[derive(Debug)]
pub(crate) struct Certificates {
    identity: ArcSwap<TlsIdentity>,
}

impl Certificates {
    /// Reads `files`.
    ///
    /// # Errors
    /// A file that cannot be read or used; the error names it.
    pub(crate) fn read(files: &[CertificateFiles], rules: &TlsRules) -> anyhow::Result<Self> {
        Ok(Self { identity: ArcSwap::new(read(files, rules)?) })
    }

    /// Uses certificates that were [read](read) for new handshakes.
    pub(crate) fn replace(&self, identity: Arc<TlsIdentity>) {
        self.identity.store(identity);
    }

    pub(super) fn current(&self) -> Guard<Arc<TlsIdentity>> {
        self.identity.load()
    }
}

/// Reads `files`, for connections by `rules`.
///
/// # Errors
/// A file that cannot be read or used; the error names it.
pub(crate) fn read(files: &[CertificateFiles], rules: &TlsRules) -> anyhow::Result<Arc<TlsIdentity>> {
    let certificates = files.iter().map(read_pair).collect::<anyhow::Result<Vec<_>>>()?;
    TlsIdentity::new(certificates, rules).map(Arc::new).context("--cert")
}

fn read_pair(files: &CertificateFiles) -> anyhow::Result<TlsCertificate> {
    let CertificateFiles { cert, key } = files;
    let chain = regular_file::read(cert).with_context(|| format!("--cert: cannot read {}", cert.display()))?.bytes;
    let secret = secret_file::read_private_key(key).context("--key")?;
    let certificate = TlsCertificate::from_pem(&chain, &secret);
    certificate.with_context(|| format!("--cert {} with --key {}", cert.display(), key.display()))
}
