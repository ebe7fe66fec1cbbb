//! The program name `turnserver`: coturn's own options.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use turn_import::coturn::{self, Arguments};

use super::{Args, Origin, run_from};
use crate::config::Config;

const NAME: &str = "turnserver.conf";
const USAGE: &str = "Usage: turnserver [-c FILE | -n] [OPTIONS of coturn's turnserver]\n\n\
    This is truetick. It reads the options and the file of coturn, and stays in the foreground.\n\
    `truetick import FILE` shows how truetick treats each option; `truetick turn --help` lists its own flags.\n";

/// Runs the server as coturn's `turnserver` would, and returns the exit status.
///
/// # Errors
/// An argument is not UTF-8 or no option of coturn; the server cannot start.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let text = |argument: OsString| argument.into_string().map_err(|_| anyhow::anyhow!("an argument is not UTF-8"));
    let arguments: Vec<String> = arguments.map(text).collect::<anyhow::Result<_>>()?;
    let Arguments { file, no_file, help, version, settings } =
        coturn::arguments(&arguments).map_err(anyhow::Error::msg)?;
    if help {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    if version {
        println!("truetick {}", env!("CARGO_PKG_VERSION"));
        return Ok(ExitCode::SUCCESS);
    }
    // The values are read again with the file.
    drop(settings);
    let file = if no_file { None } else { find(file.as_deref().unwrap_or(Path::new(NAME))) };
    let origin = Origin::coturn(file, arguments, &Config::default())?;
    run_from(Args::default(), &origin)
}

/// Returns the file as coturn finds it: an absolute path, or in the folders that it searches.
fn find(file: &Path) -> Option<PathBuf> {
    let candidates = coturn::FOLDERS.iter().map(|folder| Path::new(folder).join(file));
    let found =
        if file.is_absolute() { Some(file.to_owned()) } else { candidates.into_iter().find(|path| path.is_file()) };
    if found.as_ref().is_none_or(|path| !path.is_file()) {
        tracing::warn!(file = %file.display(), "cannot find the configuration file: defaults and arguments count");
        return None;
    }
    found
}
