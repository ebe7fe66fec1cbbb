//! Programs under a root file system of their own.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::programs::{is_on_path, is_root};

/// A folder that programs see as `/`.
pub(super) struct Root {
    pub(super) folder: PathBuf,
    /// Path inside of the folder of the program that starts the others.
    emulator: Option<&'static str>,
}

impl Root {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, emulator: None }
    }

    /// Copies a file into it.
    pub(super) fn add(&self, file: &Path, name: &str) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        std::fs::copy(file, &path).with_context(|| path.display().to_string())?;
        Ok(())
    }

    pub(super) fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// Makes /dev/urandom; `false` if only root may.
    pub(super) fn add_random(&self) -> anyhow::Result<bool> {
        if !is_root() {
            return Ok(false);
        }
        std::fs::create_dir_all(self.folder.join("dev"))?;
        for (name, minor) in [("dev/random", "8"), ("dev/urandom", "9")] {
            let mut mknod = Command::new("mknod");
            let status = mknod.arg(self.folder.join(name)).args(["c", "1", minor]).status().context("mknod")?;
            ensure!(status.success(), "mknod: {status}");
        }
        Ok(true)
    }

    /// Starts programs of another kind of machine through the static program `emulator`.
    pub(super) fn emulate(&mut self, emulator: &'static str) -> anyhow::Result<()> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let file = std::env::split_paths(&paths).map(|folder| folder.join(emulator)).find(|file| file.is_file());
        self.add(&file.context(emulator)?, emulator)?;
        self.emulator = Some(emulator);
        Ok(())
    }

    /// Starts `program` with this root: by chroot as root, else in a user namespace.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = if is_root() {
            Command::new("chroot")
        } else {
            let mut unshare = Command::new("unshare");
            unshare.args(["--user", "--map-root-user", "chroot"]);
            unshare
        };
        command.arg(&self.folder);
        if let Some(emulator) = self.emulator {
            command.arg(format!("/{emulator}"));
        }
        command.arg(program).args(arguments);
        command
    }
}

/// The beginning of a command that runs as an ordinary user in new namespaces, with `folder` as its read-only root.
///
/// # Errors
/// The reason for a skip.
pub(super) fn namespaces(folder: &Path, user: &str) -> Result<Command, String> {
    if !is_on_path("bwrap") {
        return Err("no bwrap (Debian: bubblewrap)".to_owned());
    }
    let mut command = Command::new("bwrap");
    command.args([
        "--unshare-all",
        "--uid",
        user,
        "--gid",
        user,
        "--die-with-parent",
        "--clearenv",
        "--cap-drop",
        "ALL",
    ]);
    command.arg("--ro-bind").arg(folder).args(["/", "--proc", "/proc", "--dev", "/dev"]);
    Ok(command)
}

/// A server that has said that it is ready; killed when dropped.
pub(super) struct Serving {
    child: Child,
    pub(super) banner: Vec<String>,
}

impl Serving {
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut serving =
            Self { child: child.with_context(|| format!("{:?}", command.get_program()))?, banner: Vec::new() };
        let output = BufReader::new(serving.child.stdout.take().context("no output")?);
        for line in output.lines() {
            let line = line?;
            if line == "ready" {
                return Ok(serving);
            }
            serving.banner.push(line);
        }
        let status = serving.child.wait()?;
        ensure!(false, "{command:?} ended before it was ready: {status}");
        Ok(serving)
    }

    /// Port of its first UDP address.
    pub(super) fn port(&self) -> anyhow::Result<u16> {
        let line = self.banner.iter().find(|line| line.starts_with("listening on udp ")).context("no UDP address")?;
        let (_, port) = line.rsplit_once(':').context("no port")?;
        Ok(port.parse()?)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
