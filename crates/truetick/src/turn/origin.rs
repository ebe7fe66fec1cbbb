//! Where the configuration of a server comes from, at its start and at a reload.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use tt_os::regular_file::{self, Contents};
use turn_import::{Host, Import, Outcome, coturn, eturnal};
use turn_server::{AuthSecret, TurnConfig, TurnSection, User};
use zeroize::Zeroizing;

use crate::config::Config;

/// Permissions of others, and those of the group to change a file with credentials.
const OTHERS: u32 = 0o037;

/// Where the configuration comes from.
pub(super) enum Origin {
    /// A file of truetick, already read, or none.
    Own(Box<Config>),
    /// The file and the arguments of coturn. The arguments count after the file.
    Coturn { file: Option<PathBuf>, arguments: Vec<String> },
}

/// A configuration, and credentials that no key holds.
pub(super) struct Loaded {
    pub(super) config: Config,
    import: Option<Import>,
}

impl Origin {
    /// Returns an origin in coturn's file, which replaces `own`.
    ///
    /// # Errors
    /// `own` is a file.
    pub(super) fn coturn(file: Option<PathBuf>, arguments: Vec<String>, own: &Config) -> anyhow::Result<Self> {
        ensure!(own.path().is_none(), "--coturn and --config cannot be combined: `truetick import` prints the TOML");
        Ok(Self::Coturn { file, arguments })
    }

    /// Returns the configuration at the start.
    ///
    /// # Errors
    /// As [`Origin::reload`].
    pub(super) fn load(&self) -> anyhow::Result<Loaded> {
        match self {
            Self::Own(config) => Ok(Loaded { config: (**config).clone(), import: None }),
            Self::Coturn { file, arguments } => read_coturn(file.as_deref(), arguments),
        }
    }

    /// Reads the configuration again.
    ///
    /// # Errors
    /// A file cannot be read or has an invalid value, others may read its credentials, or it has an option that is
    /// refused.
    pub(super) fn reload(&self) -> anyhow::Result<Loaded> {
        match self {
            Self::Own(config) => match config.path() {
                Some(path) => Ok(Loaded { config: Config::read(&path)?, import: None }),
                None => Ok(Loaded { config: Config::default(), import: None }),
            },
            Self::Coturn { .. } => self.load(),
        }
    }
}

impl Loaded {
    /// Checks `section`, and adds the credentials.
    ///
    /// # Errors
    /// As [`TurnConfig::new`]; a user that is no `NAME:PASSWORD`.
    pub(super) fn turn(&self, section: &TurnSection) -> anyhow::Result<TurnConfig> {
        let mut turn = TurnConfig::new(section)?;
        if let Some(import) = &self.import {
            for user in &import.users {
                turn.users.push(User::parse(user).context("turn: user")?);
            }
            turn.auth_secrets.extend(import.secrets.iter().cloned().map(AuthSecret));
            turn.set_password_algorithms(section)?;
        }
        Ok(turn)
    }

    /// Returns the password of the database that coturn's file names.
    pub(super) fn database_password(&self) -> Option<&Zeroizing<String>> {
        self.import.as_ref()?.database_password.as_ref()
    }

    /// Returns the password of the Redis that gets messages by coturn's file.
    pub(super) fn stats_database_password(&self) -> Option<&Zeroizing<String>> {
        self.import.as_ref()?.stats_database_password.as_ref()
    }

    /// Logs what differs from the server that is replaced, and drops the credentials.
    pub(super) fn into_config(self) -> Config {
        for row in self.import.iter().flat_map(|import| &import.rows) {
            let (place, option, reason) = (&row.place, &row.option, &row.reason);
            match row.outcome {
                Outcome::Differs => tracing::warn!(place, option, reason, "differs from coturn"),
                Outcome::Unknown => tracing::warn!(place, option, "bad configuration format: unknown option"),
                Outcome::Same | Outcome::Better | Outcome::Ignored | Outcome::Refused => {}
            }
        }
        self.config
    }
}

fn read_coturn(file: Option<&Path>, arguments: &[String]) -> anyhow::Result<Loaded> {
    let import = import_coturn(file, arguments, Permissions::Required)?;
    let refused: Vec<String> =
        import.rows_of(Outcome::Refused).map(|row| format!("{}: {}: {}", row.place, row.option, row.reason)).collect();
    let name = file.map_or_else(|| "turn: coturn's options".to_owned(), |file| file.display().to_string());
    ensure!(refused.is_empty(), "{name}, {}", refused.join("; "));
    // Errors name the key of truetick that an option became.
    let config = Config::parse(&import.to_toml(None)).with_context(|| name)?;
    Ok(Loaded { config, import: Some(import) })
}

/// What happens if others may read a file with credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permissions {
    /// It is an error.
    Required,
    /// It is a warning.
    Wanted,
}

/// Reads the file and the arguments of coturn.
///
/// # Errors
/// The file cannot be read, others may read its credentials, or an argument is invalid.
pub(crate) fn import_coturn(file: Option<&Path>, arguments: &[String], wanted: Permissions) -> anyhow::Result<Import> {
    let mut settings = Vec::new();
    if let Some(file) = file {
        let (text, mode) = read(file)?;
        settings = coturn::lines(&text);
        if settings.iter().any(coturn::Setting::is_credential) {
            check_permissions(file, mode, wanted)?;
        }
    }
    let arguments = coturn::arguments(arguments).map_err(anyhow::Error::msg)?.settings;
    if arguments.iter().any(coturn::Setting::is_credential) {
        tracing::warn!("other users of this machine can read credentials in arguments; use the file");
    }
    settings.extend(arguments);
    Ok(coturn::import(settings, &host(file)))
}

/// Reads a file of eturnal.
///
/// # Errors
/// The file cannot be read or is not YAML that can be read.
pub(crate) fn import_eturnal(file: &Path, wanted: Permissions) -> anyhow::Result<Import> {
    let (text, mode) = read(file)?;
    let import = eturnal::import(&text, &host(Some(file)));
    let import = import.map_err(|error| anyhow::anyhow!("{}, {error}", file.display()))?;
    if import.has_credentials {
        check_permissions(file, mode, wanted)?;
    }
    Ok(import)
}

fn read(file: &Path) -> anyhow::Result<(Zeroizing<String>, u32)> {
    let cannot_read = || format!("cannot read {}", file.display());
    let contents = regular_file::read(file).with_context(cannot_read)?;
    let mode = contents.mode;
    Ok((Contents::text(contents).with_context(cannot_read)?, mode))
}

fn check_permissions(file: &Path, mode: u32, wanted: Permissions) -> anyhow::Result<()> {
    if mode & OTHERS == 0 {
        return Ok(());
    }
    if wanted == Permissions::Required {
        let file = file.display();
        bail!("{file} holds secrets and others than its owner and group may use it (mode {mode:03o}); chmod 640 it");
    }
    let (file, mode) = (file.display().to_string(), format!("{mode:03o}"));
    tracing::warn!(file, mode, "others than its owner and group may use a file with secrets; chmod 640 it");
    Ok(())
}

fn host(file: Option<&Path>) -> Host<'_> {
    let folder = file.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    Host { has_ipv6: std::net::UdpSocket::bind("[::]:0").is_ok(), folder }
}
