//! `cargo xtask captures`: downloads and verifies the captures that docs/captures.md lists.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};

const DOCUMENT: &str = "docs/captures.md";
const LIST: &str = "docs/captures.list";

/// Arguments of `cargo xtask captures`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Folder of the captures [default: target/captures].
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Where the repositories' files are served.
    #[arg(long, value_name = "URL", default_value = "https://raw.githubusercontent.com")]
    base_url: String,
}

/// One file.
#[derive(Debug, PartialEq)]
struct Capture {
    sha256: String,
    /// Below the base URL.
    url: String,
    /// Below the folder of the captures.
    path: String,
}

/// Downloads what is absent, and verifies everything.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let captures = captures(&read(DOCUMENT)?, &read(LIST)?)?;
    let folder = arguments.folder.clone().unwrap_or_else(|| root.join("target/captures"));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let absent: Vec<&Capture> = captures.iter().filter(|capture| !folder.join(&capture.path).is_file()).collect();
    if !absent.is_empty() {
        println!("downloading {} of {} files to {}", absent.len(), captures.len(), folder.display());
        download(&folder, &arguments.base_url, &absent)?;
    }
    if !verify(&folder, &captures)? {
        println!("remove the files that differ and run the command again");
        return Ok(ExitCode::FAILURE);
    }
    println!("{} files verified", captures.len());
    println!("export TRUETICK_DATA={}", folder.canonicalize()?.display());
    Ok(ExitCode::SUCCESS)
}

/// The rows of the list, with the repositories and commits of the document's table.
fn captures(document: &str, list: &str) -> anyhow::Result<Vec<Capture>> {
    let source = |name: &str| {
        document.lines().find_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            matches!(cells[..], ["", first, _, commit, _, ""] if first == name && commit.len() == 40)
                .then(|| format!("{}/{}", cells[2], cells[3]))
        })
    };
    let rows = list.lines().filter(|line| !line.starts_with('#'));
    let captures = rows.map(|line| {
        let [sha256, name, there, path] = line.split(' ').collect::<Vec<_>>()[..] else {
            anyhow::bail!("{LIST}: {line}");
        };
        let source = source(name).with_context(|| format!("{DOCUMENT} has no source {name}"))?;
        Ok(Capture { sha256: sha256.to_owned(), url: format!("{source}/{there}"), path: path.to_owned() })
    });
    captures.collect()
}

/// Downloads all files with one curl.
fn download(folder: &Path, base_url: &str, captures: &[&Capture]) -> anyhow::Result<()> {
    let mut config = String::new();
    for capture in captures {
        writeln!(
            config,
            "url = \"{base_url}/{}\"\noutput = \"{}\"",
            capture.url,
            folder.join(&capture.path).display()
        )?;
    }
    let file = folder.join("curl.config");
    std::fs::write(&file, config)?;
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--location", "--silent", "--show-error", "--retry", "3", "--create-dirs", "--parallel"]);
    let status = curl.arg("--config").arg(&file).status().context("cannot run curl")?;
    std::fs::remove_file(&file)?;
    ensure!(status.success(), "curl: {status}; is there a network?");
    Ok(())
}

/// Compares the files with their SHA-256 and prints those that differ.
fn verify(folder: &Path, captures: &[Capture]) -> anyhow::Result<bool> {
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet", "-"]).current_dir(folder).stdin(Stdio::piped());
    let mut check = check.spawn().context("cannot run sha256sum")?;
    let lines: String = captures.iter().map(|capture| format!("{}  {}\n", capture.sha256, capture.path)).collect();
    std::io::Write::write_all(&mut check.stdin.take().context("sha256sum has no input")?, lines.as_bytes())?;
    Ok(check.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_list_has_a_source() {
        let root = crate::workspace_root();
        let [document, list] = [DOCUMENT, LIST].map(|path| std::fs::read_to_string(root.join(path)).unwrap());
        let captures = captures(&document, &list).unwrap();
        assert_eq!(captures.len(), list.lines().count() - 1);
        let kraken = captures.iter().find(|capture| capture.path == "kraken/v2_btcusd_depth10.cbcap").unwrap();
        assert!(kraken.url.starts_with("jdardash/crossbook/defcb837"), "{}", kraken.url);
        assert!(kraken.url.ends_with("/tests/fixtures/kraken_btcusd_l2.cbcap"), "{}", kraken.url);
        assert!(captures.iter().all(|capture| capture.sha256.len() == 64));
        assert!(super::captures(&document, "0 unknown a b\n").is_err());
    }
}
