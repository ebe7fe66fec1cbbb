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
    files: Vec<CertificateFiles>,
    rules: TlsRules,
    identity: ArcSwap<TlsIdentity>,
}

impl Certificates {
    /// Reads `files`.
    ///
    /// # Errors
    /// A file that cannot be read or used; the error names it.
    pub(crate) fn read(files: &[CertificateFiles], rules: &TlsRules) -> anyhow::Result<Self> {
        let identity = ArcSwap::from_pointee(read(files, rules)?);
        Ok(Self { files: files.to_vec(), rules: rules.clone(), identity })
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// As [`Certificates::read`]; the current certificates stay in use.
    pub(crate) fn reload(&self) -> anyhow::Result<()> {
        self.identity.store(Arc::new(read(&self.files, &self.rules)?));
        Ok(())
    }

    pub(super) fn current(&self) -> Guard<Arc<TlsIdentity>> {
        self.identity.load()
    }
}

fn read(files: &[CertificateFiles], rules: &TlsRules) -> anyhow::Result<TlsIdentity> {
    let certificates = files.iter().map(read_pair).collect::<anyhow::Result<Vec<_>>>()?;
    TlsIdentity::new(certificates, rules).context("--cert")
}

fn read_pair(files: &CertificateFiles) -> anyhow::Result<TlsCertificate> {
    let CertificateFiles { cert, key } = files;
    let chain = regular_file::read(cert).with_context(|| format!("--cert: cannot read {}", cert.display()))?.bytes;
    let secret = secret_file::read_private_key(key).context("--key")?;
    let certificate = TlsCertificate::from_pem(&chain, &secret);
    certificate.with_context(|| format!("--cert {} with --key {}", cert.display(), key.display()))
}
