//! Tools that the suites need: found, or installed if that is allowed.

use super::Workplace;
use crate::programs::{has_cargo_command, is_on_path};

/// Folder of the browser tests' npm package.
const BROWSER_FOLDER: &str = "crates/truetick/tests/browser";
/// The packages in it.
const NPM_PACKAGES: [&str; 2] = ["playwright-core", "axe-core"];
/// Python packages of the client tests, with their versions.
const PYTHON_PACKAGES: &str = "crates/truetick/tests/requirements.txt";

/// Prints why something is missing; the tests that need it are skipped.
pub(super) fn note(brought: Result<(), String>) {
    if let Err(reason) = brought {
        println!("      {reason}");
    }
}

impl Workplace {
    /// Makes sure that `program` is installed, from Debian's `packages` (separated by spaces) if installing is allowed.
    ///
    /// # Errors
    /// The reason for a skip.
    pub(crate) fn bring_program(&self, program: &str, packages: &str) -> Result<(), String> {
        if is_on_path(program) {
            return Ok(());
        }
        if !self.may_install || !is_on_path("apt-get") {
            return Err(format!("{program} is not installed (Debian: {packages}; --install adds it)"));
        }
        println!("      installing {packages}");
        let mut install = self.steps.command("apt-get", &["install", "--yes", "--no-install-recommends"]);
        self.steps.finish(
            &format!("install {packages}"),
            install.args(packages.split(' ')).env("DEBIAN_FRONTEND", "noninteractive"),
        );
        if is_on_path(program) { Ok(()) } else { Err(format!("{packages} cannot be installed")) }
    }

    /// Installs `cargo NAME` from the crate `package` if it is missing and installing is allowed. A debug build takes a
    /// quarter of the time.
    pub(crate) fn bring_cargo_command(&self, name: &str, package: &str) {
        if self.may_install && !has_cargo_command(&self.steps.root, name) {
            self.install_crate(package, &[]);
        }
    }

    /// Installs the program that the crate `package` has under its own name if it is missing and installing is allowed,
    /// with no more than `features` of it.
    pub(crate) fn bring_crate(&self, package: &str, features: &str) {
        if self.may_install && !is_on_path(package) {
            self.install_crate(package, &["--no-default-features", "--features", features]);
        }
    }

    fn install_crate(&self, package: &str, selection: &[&str]) {
        println!("      installing {package}");
        let mut install = self.steps.command("cargo", &["install", "--quiet", "--debug", "--locked", package]);
        self.steps.finish(&format!("install {package}"), install.args(selection));
    }

    /// Makes sure that the toolchain can build for `target`.
    pub(crate) fn bring_target(&self, target: &str) -> Result<(), String> {
        self.bring_with_rustup("target", &[], target)
    }

    /// Makes sure that the toolchain has `component`.
    pub(crate) fn bring_component(&self, component: &str) -> Result<(), String> {
        self.bring_with_rustup("component", &[], component)
    }

    /// Makes sure that the nightly toolchain has `component`.
    pub(crate) fn bring_nightly(&self, component: &str) -> Result<(), String> {
        self.bring_with_rustup("component", &["--toolchain", "nightly"], component)
    }

    fn bring_with_rustup(&self, kind: &str, toolchain: &[&str], name: &str) -> Result<(), String> {
        let of_rustup = |what: &[&str]| {
            let arguments = [&[kind], what, toolchain].concat();
            self.steps.finish(&format!("rustup {name}"), &mut self.steps.command("rustup", &arguments))
        };
        let installed = of_rustup(&["list", "--installed"]);
        if installed.succeeded() && installed.output.lines().any(|line| line.starts_with(name)) {
            return Ok(());
        }
        if !self.may_install {
            return Err(format!("the toolchain lacks {name} (--install adds it)"));
        }
        if of_rustup(&["add", name]).succeeded() { Ok(()) } else { Err(format!("rustup cannot add {name}")) }
    }

    /// Makes sure that `.venv` holds the Python packages of the client tests.
    pub(crate) fn bring_python(&self) -> Result<(), String> {
        if !self.steps.root.join(PYTHON_PACKAGES).exists() {
            return Ok(());
        }
        let python = self.steps.root.join(".venv/bin/python");
        let has_aioice = || {
            let mut import = self.steps.command(&python.to_string_lossy(), &["-c", "import aioice"]);
            self.steps.finish("aioice", &mut import).succeeded()
        };
        if has_aioice() {
            return Ok(());
        }
        if !self.may_install {
            return Err("aioice is not installed (--install adds it)".to_owned());
        }
        if !python.exists() {
            self.bring_program("python3", "python3-venv")?;
            let made = self.steps.finish("venv", &mut self.steps.command("python3", &["-m", "venv", ".venv"]));
            if !made.succeeded() {
                return Err("python3 cannot make a virtual environment".to_owned());
            }
        }
        let arguments = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", PYTHON_PACKAGES];
        let finished = self.steps.finish("pip", &mut self.steps.command(&python.to_string_lossy(), &arguments));
        if finished.succeeded() { Ok(()) } else { Err(format!("pip cannot install {PYTHON_PACKAGES}")) }
    }

    /// Makes sure that the browser tests' npm packages are there.
    pub(crate) fn bring_npm(&self) -> Result<(), String> {
        let folder = self.steps.root.join(BROWSER_FOLDER);
        let has_all = NPM_PACKAGES.iter().all(|name| folder.join("node_modules").join(name).exists());
        if !folder.join("package.json").exists() || has_all {
            return Ok(());
        }
        if !self.may_install {
            return Err(format!("{} are not installed (--install adds them)", NPM_PACKAGES.join(" and ")));
        }
        self.bring_program("node", "nodejs")?;
        self.bring_program("npm", "npm")?;
        let command = if folder.join("package-lock.json").exists() { "ci" } else { "install" };
        let mut npm = self.steps.command("npm", &[command, "--no-audit", "--no-fund"]);
        let finished = self.steps.finish("npm", npm.current_dir(&folder).env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1"));
        if finished.succeeded() { Ok(()) } else { Err(format!("npm cannot install the packages of {BROWSER_FOLDER}")) }
    }
}
