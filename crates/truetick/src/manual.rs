//! `truetick completions` and `truetick man`: the command line for shells and manuals, generated from its definition.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap_complete::Shell;
use tt_os::stdout;

/// Flags of `truetick completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Flags of `truetick man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Write a page for each command into this folder: truetick.1, truetick-turn.1, and so on [default: print truetick.1]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Prints the completions of `command`.
///
/// # Errors
/// Standard output is closed.
pub(crate) fn completions(args: &CompletionsArgs, mut command: clap::Command) -> Result<()> {
    let (mut text, name) = (Vec::new(), command.get_name().to_owned());
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    stdout::ignore_broken_pipe(stdout::print(&String::from_utf8_lossy(&text)).map_err(anyhow::Error::new))
}

/// Prints the manual page of `command`, or writes those of all its commands.
///
/// # Errors
/// The folder cannot be written, or standard output is closed.
pub(crate) fn man(args: &ManArgs, mut command: clap::Command) -> Result<()> {
    let Some(folder) = &args.out else {
        let text = page(command).context("man")?;
        return stdout::ignore_broken_pipe(stdout::print(&text).map_err(anyhow::Error::new));
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    command.build();
    let name = command.get_name().to_owned();
    write(folder, &name, &command)
}

fn write(folder: &Path, name: &str, command: &clap::Command) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    let text = page(command.clone().display_name(name.to_owned()))?;
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    for child in command.get_subcommands().filter(|child| child.get_name() != "help" && !child.is_hide_set()) {
        write(folder, &format!("{name}-{}", child.get_name()), child)?;
    }
    Ok(())
}

fn page(command: clap::Command) -> io::Result<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
