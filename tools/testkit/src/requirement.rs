//! Requirements of tests that not every machine meets.

use std::env;
use std::fmt::{self, Display};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

/// Names the file to which skips are appended; `cargo xtask test` sets it.
const SKIPS_FILE: &str = "TRUETICK_SKIPS";

/// Something that not every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Captured market data, found through `TRUETICK_DATA`.
    Captures,
    /// A program or package that is not part of the repository.
    Program,
    /// The right to make network namespaces.
    NetNamespace,
    /// A right that ordinary users lack: raw sockets, mounts, locked memory, another process's memory.
    Privilege,
    /// Two CPUs.
    TwoCpus,
    /// An IPv6 address.
    Ipv6,
    /// An optimised build for x86-64.
    OptimisedBuild,
    /// A machine without other load.
    IdleMachine,
}

impl Display for Requirement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Captures => "captures",
            Self::Program => "program",
            Self::NetNamespace => "net-namespace",
            Self::Privilege => "privilege",
            Self::TwoCpus => "two-cpus",
            Self::Ipv6 => "ipv6",
            Self::OptimisedBuild => "optimised-build",
            Self::IdleMachine => "idle-machine",
        })
    }
}

/// Returns what `attempt` brought, or `None` after recording that the running test is skipped.
///
/// The record is a line of `TRUETICK_SKIPS`: test, requirement and reason, separated by tabs. This is the only way for
/// a test to end early; `cargo xtask tidy` checks it.
///
/// ```
/// use testkit::{Requirement, require};
///
/// fn test() {
///     let Some(cpus) = require(Requirement::TwoCpus, testkit::two_cpus()) else { return };
///     assert!(cpus.get() >= 2);
/// }
/// # test();
/// ```
///
/// # Panics
/// The record cannot be written.
pub fn require<T, E: Display>(requirement: Requirement, attempt: Result<T, E>) -> Option<T> {
    let reason = match attempt {
        Ok(found) => return Some(found),
        Err(reason) => reason.to_string().replace(['\t', '\n'], " "),
    };
    // libtest runs each test on a thread that has the test's name.
    let thread = thread::current();
    let test = thread.name().unwrap_or_default();
    match env::var_os(SKIPS_FILE) {
        Some(file) => {
            let mut records = OpenOptions::new().append(true).create(true).open(file).expect("the file of skips");
            records.write_all(format!("{test}\t{requirement}\t{reason}\n").as_bytes()).expect("the record of a skip");
        }
        None => eprintln!("{test} is skipped: {requirement}: {reason}"),
    }
    None
}

/// The folder of captures; skips the test without one.
///
/// # Panics
/// `TRUETICK_REQUIRE_DATA` is set and `TRUETICK_DATA` is not, or is no folder.
#[must_use]
pub fn require_captures() -> Option<PathBuf> {
    let folder = env::var_os("TRUETICK_DATA").map(PathBuf::from).filter(|folder| folder.is_dir());
    let is_required = env::var_os("TRUETICK_REQUIRE_DATA").is_some();
    assert!(folder.is_some() || !is_required, "TRUETICK_REQUIRE_DATA is set, but TRUETICK_DATA is no folder");
    require(Requirement::Captures, folder.ok_or("TRUETICK_DATA is not set: docs/captures.md"))
}

/// Finds `program` on the search path.
///
/// # Errors
/// The program is not installed; the reason names the Debian `package` that holds it.
pub fn find_program(program: &str, package: &str) -> Result<PathBuf, String> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let found =
        env::split_paths(&paths).map(|folder: PathBuf| folder.join(program)).find(|path: &PathBuf| path.is_file());
    found.ok_or_else(|| format!("{program} is not installed (Debian package {package})"))
}

/// The number of CPUs, if there are at least two.
///
/// # Errors
/// There is one CPU.
pub fn two_cpus() -> Result<NonZero<usize>, &'static str> {
    let cpus = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    if cpus.get() < 2 { Err("there is one CPU") } else { Ok(cpus) }
}

/// Finds Chromium, Node and the packages in `folder` that drive a browser.
///
/// # Errors
/// One of them is not installed.
pub fn find_browser(folder: &Path) -> Result<PathBuf, String> {
    let chromium = find_program("chromium", "chromium")?;
    find_program("node", "nodejs")?;
    for package in ["playwright-core", "axe-core"] {
        if !folder.join("node_modules").join(package).is_dir() {
            return Err(format!("{package} is not installed (npm ci in {})", folder.display()));
        }
    }
    Ok(chromium)
}
