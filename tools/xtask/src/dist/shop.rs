//! Folders, versions and programs that every artefact uses.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

/// The workspace and the folder of its artefacts.
pub(crate) struct Shop {
    pub(super) root: PathBuf,
    /// target/dist.
    pub(super) folder: PathBuf,
    /// Version of the workspace.
    pub(super) version: String,
    /// Time of the commit, in seconds since 1970: no file of an artefact is younger.
    pub(super) epoch: String,
}

impl Shop {
    pub(crate) fn open(root: PathBuf) -> anyhow::Result<Self> {
        let folder = root.join("target/dist");
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let manifest: toml::Table = std::fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
        let version = manifest["workspace"]["package"]["version"].as_str().context("no version")?.to_owned();
        let epoch = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(&root))?;
        Ok(Self { root, folder, version, epoch })
    }

    /// Makes an empty folder in target/dist.
    pub(super) fn empty(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    }

    /// Packs `folder` into `archive`, whose bytes depend on names, contents and modes only. Its end says how it is
    /// compressed.
    pub(super) fn pack(&self, folder: &Path, archive: &Path, members: &[&str]) -> anyhow::Result<()> {
        let mtime = format!("--mtime=@{}", self.epoch);
        let arguments =
            ["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu", &mtime, "--file"];
        let tar = archive.with_extension("unpacked.tar");
        finish(Command::new("tar").args(arguments).arg(&tar).arg("--directory").arg(folder).args(members))?;
        if archive.extension().is_some_and(|extension| extension == "gz") {
            let gzip = Command::new("gzip").args(["-n", "-9", "-c"]).arg(&tar).stderr(Stdio::inherit()).output();
            let gzip = gzip.context("gzip")?;
            ensure!(gzip.status.success(), "gzip: {}", gzip.status);
            std::fs::write(archive, gzip.stdout)?;
            std::fs::remove_file(&tar)?;
        } else {
            std::fs::rename(&tar, archive)?;
        }
        Ok(())
    }

    /// Name of `path` from the workspace's folder.
    pub(super) fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

/// Runs `command`, whose output is shown.
pub(super) fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{:?}", command.get_program()))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// Runs `command` and returns what it prints, without the last line feed.
pub(super) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{:?}", command.get_program()))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?}: {}\n{}{error}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

/// SHA-256 of a file, in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(super) fn len(path: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(path).with_context(|| path.display().to_string())?.len())
}

/// Whether `program` can be started.
pub(super) fn has(program: &str) -> bool {
    crate::programs::is_on_path(program)
}
