//! Bringing what the suites need.

use std::path::Path;
use std::process::{Command, Stdio};

use super::Workplace;

/// Folder of the browser tests' npm package.
const BROWSER_FOLDER: &str = "crates/truetick/tests/browser";
/// Python packages of the client tests, with their versions.
const PYTHON_PACKAGES: &str = "crates/truetick/tests/requirements.txt";

/// Whether the process may install Debian packages without asking.
pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Whether `program` can be started.
pub(crate) fn is_on_path(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

impl Workplace {
    /// Makes sure that `program` is there, from Debian's `package` where that is allowed.
    ///
    /// The error is the reason for a skip.
    pub(crate) fn bring_program(&self, program: &str, package: &str) -> Result<(), String> {
        if is_on_path(program) {
            return Ok(());
        }
        if !self.may_install || !is_on_path("apt-get") {
            return Err(format!("{program} is absent (Debian package {package}; --install brings it)"));
        }
        println!("      installing {package}");
        let mut install = self.command("apt-get", &["install", "--yes", "--no-install-recommends", package]);
        self.finish(&format!("install {package}"), install.env("DEBIAN_FRONTEND", "noninteractive"));
        if is_on_path(program) { Ok(()) } else { Err(format!("{program} is absent and {package} cannot be installed")) }
    }

    /// Makes sure that the toolchain can build for `target`.
    pub(crate) fn bring_target(&self, target: &str) -> Result<(), String> {
        self.bring_with_rustup(&["target", "add", target], target)
    }

    /// Makes sure that the toolchain has `component`.
    pub(crate) fn bring_component(&self, component: &str) -> Result<(), String> {
        self.bring_with_rustup(&["component", "add", component], component)
    }

    /// Makes sure that the nightly toolchain has `component`.
    pub(crate) fn bring_nightly(&self, component: &str) -> Result<(), String> {
        self.bring_with_rustup(&["component", "add", "--toolchain", "nightly", component], component)
    }

    fn bring_with_rustup(&self, arguments: &[&str], what: &str) -> Result<(), String> {
        let finished = self.finish(&format!("rustup {what}"), &mut self.command("rustup", arguments));
        if finished.succeeded() { Ok(()) } else { Err(format!("rustup cannot bring {what}")) }
    }

    /// Makes sure that `.venv` holds the Python packages of the client tests.
    pub(crate) fn bring_python(&self) -> Result<(), String> {
        if !self.root.join(PYTHON_PACKAGES).exists() {
            return Ok(());
        }
        let python = self.root.join(".venv/bin/python");
        if !python.exists() {
            self.bring_program("python3", "python3-venv")?;
            let made = self.finish("venv", &mut self.command("python3", &["-m", "venv", ".venv"]));
            if !made.succeeded() {
                return Err("python3 cannot make a virtual environment".to_owned());
            }
        }
        let arguments = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", PYTHON_PACKAGES];
        let finished = self.finish("pip", &mut self.command(&python.to_string_lossy(), &arguments));
        if finished.succeeded() { Ok(()) } else { Err(format!("pip cannot install {PYTHON_PACKAGES}")) }
    }

    /// Makes sure that the browser tests' npm packages are there.
    pub(crate) fn bring_npm(&self) -> Result<(), String> {
        let folder = self.root.join(BROWSER_FOLDER);
        if !folder.join("package.json").exists() || folder.join("node_modules").exists() {
            return Ok(());
        }
        self.bring_program("node", "nodejs")?;
        self.bring_program("npm", "npm")?;
        let command = if folder.join("package-lock.json").exists() { "ci" } else { "install" };
        let mut npm = self.command("npm", &[command, "--no-audit", "--no-fund"]);
        let finished = self.finish("npm", npm.current_dir(&folder).env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1"));
        if finished.succeeded() { Ok(()) } else { Err(format!("npm cannot install the packages of {BROWSER_FOLDER}")) }
    }
}

/// Whether `cargo NAME` exists.
pub(crate) fn has_cargo_command(root: &Path, name: &str) -> bool {
    let status = Command::new("cargo")
        .args([name, "--version"])
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
