//! A new reading of the configuration, on request.

use std::fmt;
use std::pin::Pin;

/// Reads the configuration again, as SIGHUP does.
pub trait Reload: Send + Sync {
    /// Applies all of the configuration or nothing.
    ///
    /// # Errors
    /// [`ReloadError`]; with [`ReloadError::Invalid`] the former configuration stays in use.
    fn reload(&self) -> ReloadFuture<'_>;
}

/// The end of a reload.
pub type ReloadFuture<'a> = Pin<Box<dyn Future<Output = Result<(), ReloadError>> + Send + 'a>>;

/// Why a configuration was not reloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadError {
    /// What is wrong with the new one, or needs a restart; names the file and the keys.
    Invalid(String),
    /// The program is stopping.
    Stopping,
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason) => f.write_str(reason),
            Self::Stopping => f.write_str("the program is stopping"),
        }
    }
}

impl std::error::Error for ReloadError {}
