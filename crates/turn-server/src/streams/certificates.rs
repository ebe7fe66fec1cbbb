//! The certificates for TLS, which a reload replaces while connections stay open.

use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::{ArcSwapOption, Guard};
use tt_net::stream::{TlsCertificate, TlsIdentity, TlsRules};
use tt_os::{regular_file, secret_file};
use turn_config::CertificateFiles;

/// The certificates for new handshakes, if any. A connection keeps the one that it started with.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    identity: ArcSwapOption<TlsIdentity>,
}

impl Certificates {
    /// Uses certificates that were [read](read) for new handshakes; without any, there are no new ones.
    pub(crate) fn replace(&self, identity: Option<Arc<TlsIdentity>>) {
        self.identity.store(identity);
    }

    /// Returns whether there are certificates.
    pub(super) fn has_any(&self) -> bool {
        self.identity.load().is_some()
    }

    pub(super) fn current(&self) -> Guard<Option<Arc<TlsIdentity>>> {
        self.identity.load()
    }
}

/// Reads `files`, for connections by `rules`; `None` without files.
///
/// # Errors
/// A file that cannot be read or used; the error names it.
pub(crate) fn read(files: &[CertificateFiles], rules: &TlsRules) -> anyhow::Result<Option<Arc<TlsIdentity>>> {
    if files.is_empty() {
        return Ok(None);
    }
    let certificates = files.iter().map(read_pair).collect::<anyhow::Result<Vec<_>>>()?;
    TlsIdentity::new(certificates, rules).map(|identity| Some(Arc::new(identity))).context("--cert")
}

fn read_pair(files: &CertificateFiles) -> anyhow::Result<TlsCertificate> {
    let CertificateFiles { cert, key } = files;
    let chain = regular_file::read(cert).with_context(|| format!("--cert: cannot read {}", cert.display()))?.bytes;
    let secret = secret_file::read_private_key(key).context("--key")?;
    let certificate = TlsCertificate::from_pem(&chain, &secret);
    certificate.with_context(|| format!("--cert {} with --key {}", cert.display(), key.display()))
}
