//! The Debian package: made by cargo-deb from `[package.metadata.deb]` of crates/truetick, tested in a separate root.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::program::{self, Build};
use super::record::Record;
use super::shop::{Shop, finish, has, len, output, sha256};
use crate::programs::is_root;

/// What the test does, as root in separate namespaces: it prints one line for each thing that holds.
const TEST: &str = "tools/xtask/src/dist/debian_test.sh";
/// Debian's release of the test's root.
const RELEASE: &str = "bookworm";

/// Makes the package and tests it.
pub(super) fn make(shop: &Shop, build: Build) -> anyhow::Result<Record> {
    let mut record = Record::default();
    if !crate::programs::has_cargo_command(&shop.root, "deb") {
        record.skipped("deb: no cargo-deb (cargo install --locked cargo-deb)");
        return Ok(record);
    }
    let program = program::of_this_machine(shop, build, &mut record)?;
    stage(shop, &program)?;
    let package = shop.folder.join(format!("truetick_{}_{}.deb", shop.version, architecture()));
    let mut deb = Command::new("cargo");
    deb.args(["deb", "--no-build", "--no-strip", "--locked", "--package", "truetick", "--output"]).arg(&package);
    // The suite does not wait for the best compression.
    deb.args((build == Build::Release).then_some("--fast"));
    finish(deb.current_dir(&shop.root).env("SOURCE_DATE_EPOCH", &shop.epoch))?;
    let hash = sha256(&package)?;
    record.done(format!("{}: {} bytes, SHA-256 {}", shop.name(&package), len(&package)?, &hash[..16]));
    let contents = output(Command::new("dpkg-deb").arg("--contents").arg(&package))?;
    let is_of_root = |line: &str| line.contains(" 0/0 ") || line.contains(" root/root ");
    ensure!(contents.lines().all(is_of_root), "not all files are owned by root:\n{contents}");
    record.done(format!("{} files, owned by root", contents.lines().filter(|line| !line.starts_with('d')).count()));
    match lower(shop, build) {
        Ok(lower) => test(shop, &package, &lower, &mut record)?,
        Err(reason) => record.skipped(format!("not installed: {reason}")),
    }
    Ok(record)
}

/// Debian's name of this kind of machine.
fn architecture() -> &'static str {
    if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" }
}

/// Gathers in target/dist/deb what the package's metadata names.
fn stage(shop: &Shop, program: &Path) -> anyhow::Result<()> {
    let folder = shop.empty("deb")?;
    std::fs::copy(program, folder.join("truetick"))?;
    program::documents(shop, &folder)?;
    let unit = std::fs::read_to_string(shop.root.join("deploy/truetick.service"))?;
    ensure!(unit.contains("/usr/local/bin/"), "the unit starts no program of /usr/local/bin");
    // The comment at its top is about an installation by hand.
    let (_, unit) = unit.split_once("\n\n").context("the unit begins with a comment")?;
    std::fs::write(folder.join("truetick.service"), unit.replace("/usr/local/bin/", "/usr/bin/"))?;
    Ok(())
}

/// The file system below that of the test, which changes nothing in it: Debian as debootstrap makes it, once; for
/// the suite this machine's, if it is Debian.
///
/// # Errors
/// The reason for a skip.
fn lower(shop: &Shop, build: Build) -> Result<PathBuf, String> {
    if !is_root() {
        return Err("chroot and mount need root".to_owned());
    }
    for (program, package) in [("turnutils_uclient", "coturn"), ("ip", "iproute2"), ("unshare", "util-linux")] {
        if !has(program) {
            return Err(format!("no {program} (Debian: {package})"));
        }
    }
    if build == Build::Release {
        let is_debian = Path::new("/etc/debian_version").exists();
        return if is_debian { Ok("/".into()) } else { Err("this machine is not Debian".to_owned()) };
    }
    let folder = shop.folder.join("debian-root");
    if folder.join("var/lib/dpkg/status").exists() {
        return Ok(folder);
    }
    if !has("debootstrap") && !Path::new("/usr/sbin/debootstrap").exists() {
        return Err("no debootstrap".to_owned());
    }
    let mut debootstrap = Command::new("debootstrap");
    let made =
        finish(debootstrap.args(["--variant=minbase", RELEASE]).arg(&folder).stdout(std::process::Stdio::null()));
    made.map(|()| folder).map_err(|error| format!("{error:#}"))
}

fn test(shop: &Shop, package: &Path, lower: &Path, record: &mut Record) -> anyhow::Result<()> {
    let upper = shop.empty("deb-root")?;
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"])
        .arg(shop.root.join(TEST));
    let printed = output(unshare.arg(lower).arg(&upper).arg(package)).context("the package's test")?;
    let holds: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("ok: ")).collect();
    ensure!(holds.last() == Some(&"purged: nothing of it is left"), "the test ended early:\n{printed}");
    let system = if lower == Path::new("/") { "this machine's system" } else { "Debian by debootstrap" };
    record.done(format!("in a root above {system}: {}", holds.join("; ")));
    Ok(())
}
