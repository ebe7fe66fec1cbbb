//! Credentials of the commands that are clients of a TURN server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tt_os::{regular_file, secret_file};
use turn_check::Login;
use zeroize::Zeroizing;

use crate::credential;

/// Time for which a credential from a secret is valid.
const TTL: Duration = Duration::from_secs(600);

/// Flags of a client's credential and of the authorities that it trusts.
#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// File with a secret of time-limited credentials, readable by its owner only; needs --user
    #[arg(long, value_name = "F", requires = "user", conflicts_with = "user_file")]
    secret_file: Option<PathBuf>,
    /// Name for the credential from --secret-file
    #[arg(long, value_name = "NAME", requires = "secret_file")]
    user: Option<String>,
    /// File with NAME:PASSWORD in its first line, readable by its owner only
    #[arg(long, value_name = "F")]
    user_file: Option<PathBuf>,
    /// File with further authorities of certificates, PEM
    #[arg(long, value_name = "F")]
    authority_file: Option<PathBuf>,
}

impl LoginArgs {
    /// Returns the credential; `None` without a file. Errors begin with the command's name.
    ///
    /// # Errors
    /// The file cannot be read, is readable by others, or has no credential.
    pub(crate) fn login(&self, command: &str) -> anyhow::Result<Option<Login>> {
        match (&self.secret_file, &self.user, &self.user_file) {
            (Some(_), Some(user), _) => self.of_secret(command, user),
            (_, _, Some(file)) => of_user_file(file, command, "--user-file").map(Some),
            (_, _, None) => Ok(None),
        }
    }

    /// Returns a credential of another name from the secret; `None` without a secret.
    ///
    /// # Errors
    /// As [`Self::login`].
    pub(crate) fn other_login(&self, command: &str) -> anyhow::Result<Option<Login>> {
        match &self.user {
            Some(user) => self.of_secret(command, &format!("{user}-other")),
            None => Ok(None),
        }
    }

    fn of_secret(&self, command: &str, user: &str) -> anyhow::Result<Option<Login>> {
        let Some(file) = &self.secret_file else { return Ok(None) };
        let secret = secret_file::read_first_line(file).with_context(|| format!("{command}: --secret-file"))?;
        let (name, password) = credential::make(&secret, user, TTL)?;
        Ok(Some(Login { name, password }))
    }

    /// Returns the authorities of the web, and those of the file.
    ///
    /// # Errors
    /// The file cannot be read or holds no certificates.
    pub(crate) fn roots(&self, command: &str) -> anyhow::Result<turn_check::Roots> {
        let read = |path: &PathBuf| {
            let unreadable = || format!("{command}: --authority-file: cannot read {}", path.display());
            regular_file::read(path).with_context(unreadable)
        };
        let pem = self.authority_file.as_ref().map(read).transpose()?;
        let roots = turn_check::roots_of(pem.as_ref().map(|pem| pem.bytes.as_slice()));
        roots.map_err(anyhow::Error::msg).with_context(|| format!("{command}: --authority-file"))
    }
}

/// Reads NAME:PASSWORD.
///
/// # Errors
/// The file cannot be read, is readable by others, or has no credential.
pub(crate) fn of_user_file(file: &Path, command: &str, flag: &str) -> anyhow::Result<Login> {
    let line = secret_file::read_first_line(file).with_context(|| format!("{command}: {flag}"))?;
    let Some((name, password)) = line.split_once(':') else { bail!("{command}: {flag}: not NAME:PASSWORD") };
    ensure!(!name.is_empty() && !password.is_empty(), "{command}: {flag}: name and password must not be empty");
    Ok(Login { name: name.to_owned(), password: Zeroizing::new(password.to_owned()) })
}
