//! Tests of the kernel path in an older kernel: Debian 12's Linux 6.1, in a machine that QEMU emulates, without a disk or a
//! network.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::Workplace;
use super::process::Finished;
use crate::tally::{Outcome, Tally};

const VERSION: &str = "6.1";
/// Debian's package that depends on the one with the kernel.
const PACKAGE: &str = "linux-image-cloud-amd64";
/// Another kernel than Debian's.
const KERNEL: &str = "TRUETICK_KERNEL";
const FOLDER: &str = "target/old-kernel";
const EMULATOR: &str = "qemu-system-x86_64";
/// Programs that have to be there, with their packages.
const PROGRAMS: [(&str, &str); 3] = [(EMULATOR, "qemu-system-x86"), ("cpio", "cpio"), ("setpriv", "util-linux")];
/// What the first process and the tests start.
const INSIDE: [(&str, &str); 3] = [("/bin/sh", "sh"), ("/bin/mount", "mount"), ("/usr/bin/setpriv", "setpriv")];
/// Tests that load the program into the kernel and need no device.
const TESTS: &str = "program_in_the_kernel hostile::the_kernel in_kernel::";
/// Seconds for everything; it takes about forty.
const SECONDS_MAX: &str = "600";
const SKIP: &str = "skipped inside: ";

pub(super) fn run(place: &Workplace) -> Outcome {
    if !cfg!(target_arch = "x86_64") {
        return Outcome::Skipped("the kernel is for x86-64".to_owned());
    }
    if let Some(reason) = PROGRAMS.iter().find_map(|(program, package)| place.bring_program(program, package).err()) {
        return Outcome::Skipped(reason);
    }
    let kernel = match kernel(place) {
        Ok(kernel) => kernel,
        Err(reason) => return Outcome::Skipped(reason),
    };
    let binaries = match place.binaries() {
        Ok(binaries) => binaries,
        Err(error) => return Outcome::Ran(Tally::fail(error)),
    };
    let Some((tests, _)) = binaries.find("tt-path", "tests/paths") else {
        return Outcome::Ran(Tally::fail("the tests of tt-path are not built"));
    };
    match image(&place.steps.root.join(FOLDER), tests) {
        Ok(image) => judge(&place.steps.finish("old-kernel", &mut machine(&kernel, &image))),
        Err(error) => Outcome::Ran(Tally::fail(format!("old-kernel: {error:#}"))),
    }
}

/// The kernel's file: one that is named, one that is there, or Debian's if installing is allowed.
fn kernel(place: &Workplace) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(KERNEL) {
        return Ok(path.into());
    }
    let folder = place.steps.root.join(FOLDER);
    if let Some(kernel) = extracted(&folder) {
        return Ok(kernel);
    }
    if !place.may_install {
        return Err(format!("no kernel {VERSION}: {KERNEL} names none (--install brings Debian's)"));
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let depends = place.steps.finish("old-kernel-name", &mut place.steps.command("apt-cache", &["depends", PACKAGE]));
    let name = depends.output.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    let name = name.filter(|name| name.starts_with(&format!("{VERSION}.")));
    let name = name.ok_or_else(|| format!("this system has no {PACKAGE} {VERSION}"))?;
    println!("      downloading linux-image-{name}");
    let mut download = place.steps.command("apt-get", &["download", &format!("linux-image-{name}")]);
    let mut extract = place.steps.command("sh", &["-c", "dpkg-deb --extract *.deb . && rm *.deb"]);
    for (step, command) in [("old-kernel-download", &mut download), ("old-kernel-extract", &mut extract)] {
        if !place.steps.finish(step, command.current_dir(&folder)).succeeded() {
            return Err(format!("linux-image-{name} cannot be brought"));
        }
    }
    extracted(&folder).ok_or_else(|| format!("linux-image-{name} has no kernel"))
}

fn extracted(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder.join("boot")).ok()?.flatten();
    let is_kernel = |path: &PathBuf| path.to_string_lossy().contains(&format!("vmlinuz-{VERSION}."));
    entries.map(|entry| entry.path()).find(is_kernel)
}

/// Packs the first file system: the tests, what they start, and the libraries of all.
fn image(folder: &Path, tests: &Path) -> anyhow::Result<PathBuf> {
    let root = folder.join("root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    for place in ["bin", "dev", "proc", "sys", "tmp"] {
        fs::create_dir_all(root.join(place))?;
    }
    let mut programs = vec![(tests.to_owned(), "paths")];
    programs.extend(INSIDE.map(|(path, name)| (PathBuf::from(path), name)));
    for (path, name) in programs {
        fs::copy(&path, root.join("bin").join(name)).with_context(|| path.display().to_string())?;
        let output = Command::new("ldd").arg(&path).output().context("ldd")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for library in text.split_whitespace().filter(|word| word.starts_with('/')) {
            let to = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(to.parent().context("a folder")?)?;
            fs::copy(library, to).with_context(|| library.to_owned())?;
        }
    }
    let init = root.join("init");
    fs::write(&init, first_process())?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
    let pack = "find . | cpio --quiet --create --format=newc --owner=root:root > ../image";
    let packed = Command::new("sh").args(["-ec", pack]).current_dir(&root).status().context("cpio")?;
    ensure!(packed.success(), "cpio: {packed}");
    Ok(folder.join("image"))
}

/// What starts the tests and switches the machine off.
fn first_process() -> String {
    format!(
        r#"#!/bin/sh
export PATH=/bin TRUETICK_SKIPS=/tmp/skips
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
mount -t devtmpfs dev /dev
: > /tmp/skips
paths {TESTS}
while IFS= read -r line; do echo "{SKIP}$line"; done < /tmp/skips
echo o > /proc/sysrq-trigger
read -r never
"#
    )
}

fn machine(kernel: &Path, image: &Path) -> Command {
    let mut machine = Command::new("timeout");
    machine.args([SECONDS_MAX, EMULATOR, "-accel", "tcg", "-cpu", "max", "-m", "1024", "-no-reboot"]);
    machine.args(["-display", "none", "-monitor", "none", "-serial", "stdio", "-nic", "none"]);
    machine.arg("-kernel").arg(kernel).arg("-initrd").arg(image);
    machine.args(["-append", "console=ttyS0 panic=-1 quiet"]);
    machine
}

fn judge(finished: &Finished) -> Outcome {
    let output = finished.output.replace('\r', "");
    let skips: String =
        output.lines().filter_map(|line| line.strip_prefix(SKIP)).map(|record| format!("{record}\n")).collect();
    let mut tally = Tally::of_libtest(&output, &skips, "old-kernel");
    if tally.failed > 0 || tally.passed == 0 {
        finished.show_tail();
    }
    if tally == Tally::default() {
        tally.add(Tally::fail("old-kernel: the tests did not run to their end"));
    }
    Outcome::Ran(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(output: &str) -> Tally {
        match judge(&Finished { status: None, output: output.to_owned(), skips: String::new() }) {
            Outcome::Ran(tally) => tally,
            Outcome::Skipped(reason) => panic!("{reason}"),
        }
    }

    #[test]
    fn tests_and_skips_are_read_from_the_serial_line() {
        let output = "boot\r\ntest a ... ok\r\ntest b ... ok\r\n\r\ntest result: ok. 2 passed; 0 failed\r\n\
                      skipped inside: b\tprogram\tsetpriv is not installed\r\n";
        assert_eq!(judged(output).summary(), "1 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_machine_that_ends_early_has_failed() {
        assert_eq!(judged("boot\r\nKernel panic\r\n").summary(), "0 passed, 1 failed, 0 skipped");
    }
}
