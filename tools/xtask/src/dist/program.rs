//! The program: built, its debug information split off, its length checked, and started where nothing else is.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::record::Record;
use super::root::{Root, Serving};
use super::shop::{Shop, finish, has, len, output, sha256};

/// Maximum length of a stripped program, in bytes.
const LEN_MAX: u64 = 15_000_000;
/// The linker folds functions of one machine code into one, then constants of one content, such as the tables of methods
/// that have become equal (0.16 MB), and packs the 45,000 relocations that only add the address of the program (1 MB).
/// LLD can do all: it is rustc's linker for x86-64 Linux with glibc, and [`LLD`] makes it that for musl. A shared glibc
/// knows packed relocations since 2.36, of 2022. No code here asks whether two constants are at one address.
const FOLDED: [&str; 5] = ["--icf=all", "--ignore-data-address-equality", "-O2", "-z", "pack-relative-relocs"];
/// For musl rustc has all that a C compiler would give the linker.
const LLD: [&str; 2] = ["-Clinker=rust-lld", "-Clinker-flavor=ld.lld"];
/// The tables for unwinding get half as long with frame pointers, which profilers use too, and a function that no panic
/// passes needs none.
const UNWINDING: [&str; 2] = ["-Cforce-frame-pointers=yes", "-Cforce-unwind-tables=no"];
/// C code gets no tables for unwinding: no panic passes it, and they were 0.1 MB.
const C_FLAGS: &str = "-fno-asynchronous-unwind-tables -fno-unwind-tables";
const STATIC: &str = "-Ctarget-feature=+crt-static";
/// The crate getrandom finds the system call by its name in a shared library, which a static program has not: it would
/// need /dev/urandom.
const RANDOM: &str = "--cfg=getrandom_backend=\"linux_getrandom\"";
/// The C compiler for musl: one program for every kind of machine.
const CLANG: &str = "clang";
/// Starts programs for 64-bit Arm.
const QEMU: &str = "qemu-aarch64-static";

/// Which objects a program is linked from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// Built for distribution: with LTO over all crates, and without a path of this machine.
    Distribution,
    /// Those of `cargo build --release`, which a test run has already.
    Release,
}

/// A kind of machine.
pub(super) struct Target {
    /// As in file names: `x86_64` or `aarch64`.
    pub(super) arch: &'static str,
    triple: String,
}

impl Target {
    /// musl if the toolchain and a compiler have it, else glibc; glibc for the objects of a release build.
    ///
    /// # Errors
    /// The reason for a skip.
    pub(super) fn of(arch: &'static str, build: Build) -> Result<Self, String> {
        let triples = ["musl", "gnu"].map(|libc| format!("{arch}-unknown-linux-{libc}"));
        if build == Build::Release {
            let [_, triple] = triples;
            return Ok(Self { arch, triple });
        }
        // SQLite and parts of ring are C: musl needs a compiler and headers, too.
        let has_compiler = |triple: &str| !is_musl(triple) || (has(CLANG) && musl_headers(arch).is_dir());
        let Some(triple) = triples.iter().find(|triple| is_installed(triple) && has_compiler(triple)) else {
            return Err(format!("{arch}: the toolchain has neither {} nor {}", triples[0], triples[1]));
        };
        if arch != std::env::consts::ARCH && !has(&format!("{arch}-linux-gnu-gcc")) {
            return Err(format!("{arch}: no {arch}-linux-gnu-gcc (Debian: gcc-aarch64-linux-gnu)"));
        }
        Ok(Self { arch, triple: triple.clone() })
    }

    fn is_foreign(&self) -> bool {
        self.arch != std::env::consts::ARCH
    }

    /// A program of binutils for it.
    fn tool(&self, name: &str) -> Command {
        let prefix = if self.is_foreign() { format!("{}-linux-gnu-", self.arch) } else { String::new() };
        Command::new(prefix + name)
    }
}

fn is_musl(triple: &str) -> bool {
    triple.ends_with("musl")
}

/// Where Debian's `musl-dev` of that architecture has the headers of musl.
fn musl_headers(arch: &str) -> PathBuf {
    PathBuf::from(format!("/usr/include/{arch}-linux-musl"))
}

/// Returns the arguments of rustc for [`FOLDED`], for a linker that is called through a C compiler, or LLD itself.
fn folded(triple: &str) -> Option<String> {
    match triple {
        "x86_64-unknown-linux-gnu" => Some(format!("-Clink-arg=-Wl,{}", FOLDED.join(","))),
        triple if is_musl(triple) => Some(format!("-Clink-args={}", FOLDED.join(" "))),
        _ => None,
    }
}

fn is_installed(triple: &str) -> bool {
    let libraries = output(Command::new("rustc").args(["--print", "target-libdir", "--target", triple]));
    libraries.is_ok_and(|folder| PathBuf::from(folder).is_dir())
}

/// Makes the dynamically linked program.
pub(super) fn dynamic(shop: &Shop) -> anyhow::Result<Record> {
    let mut record = Record::default();
    let arguments = ["rustc", "--profile", "distribution", "--locked", "--package", "truetick", "--bin", "truetick"];
    let folded = folded(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
    let mut cargo = Command::new("cargo");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", UNWINDING.join("\u{1f}")).env("CFLAGS", C_FLAGS).current_dir(&shop.root);
    finish(cargo.args(arguments).arg("--").args(folded))?;
    let host = Target { arch: std::env::consts::ARCH, triple: String::new() };
    let built = shop.root.join("target/distribution/truetick");
    split(shop, &host, &built, (&shop.folder, Build::Distribution), &mut record)?;
    Ok(record)
}

/// Makes the static program and starts it in a folder that contains nothing else, for each kind of machine that can
/// be had.
pub(super) fn tested(shop: &Shop, build: Build) -> anyhow::Result<Record> {
    let mut record = Record::default();
    let arches: &[&str] = if build == Build::Release { &["x86_64"] } else { &["x86_64", "aarch64"] };
    for arch in arches {
        let target = match Target::of(arch, build) {
            Ok(target) => target,
            Err(reason) => {
                record.skipped(reason);
                continue;
            }
        };
        let program = build_static(shop, &target, build, &mut record)?;
        if target.is_foreign() && !has(QEMU) {
            record.skipped(format!("{arch}: not started: no {QEMU} (Debian: qemu-user-static)"));
            continue;
        }
        start(shop, &target, &program, (build, &mut record))
            .with_context(|| format!("{} in an empty root", target.triple))?;
        if build == Build::Distribution {
            archive(shop, &target, &program, &mut record)?;
        }
    }
    Ok(record)
}

/// Builds the static program of this machine, for the other artefacts.
pub(super) fn of_this_machine(shop: &Shop, build: Build, record: &mut Record) -> anyhow::Result<PathBuf> {
    let target = Target::of(std::env::consts::ARCH, build).map_err(anyhow::Error::msg)?;
    build_static(shop, &target, build, record)
}

fn build_static(shop: &Shop, target: &Target, build: Build, record: &mut Record) -> anyhow::Result<PathBuf> {
    let built = compile(&shop.root, &target.triple, build)?;
    let folder = shop.folder.join(format!("truetick-{}-linux", target.arch));
    std::fs::create_dir_all(&folder)?;
    let program = split(shop, target, &built, (&folder, build), record)?;
    let libraries = output(target.tool("readelf").args(["--dynamic", "--wide"]).arg(&program))?;
    ensure!(!libraries.contains("(NEEDED)"), "{} needs shared libraries:\n{libraries}", target.triple);
    record.done(format!("{}: no shared library", target.triple));
    Ok(program)
}

/// Builds the static program in the workspace at `root`, and returns its path.
pub(super) fn compile(root: &std::path::Path, triple: &str, build: Build) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["rustc", "--locked", "--package", "truetick", "--bin", "truetick", "--profile"]);
    if build == Build::Release {
        // Only the last step differs from the program that tests use: the standard library decides there how it links.
        finish(cargo.args(["release", "--", STATIC]))?;
        return Ok(root.join("target/release/truetick"));
    }
    let home =
        std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| std::env::home_dir().map(|it| it.join(".cargo")));
    let home = home.context("no CARGO_HOME")?;
    let paths = [(root, "/truetick"), (&home, "/cargo")].map(|(from, to)| format!("{}={to}", from.display()));
    let flags = [STATIC.to_owned(), RANDOM.to_owned()]
        .into_iter()
        .chain(UNWINDING.map(str::to_owned))
        .chain(paths.iter().map(|path| format!("--remap-path-prefix={path}")))
        .chain(LLD.into_iter().filter(|_| is_musl(triple)).map(str::to_owned));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.collect::<Vec<_>>().join("\u{1f}"));
    let maps = paths.map(|path| format!("-ffile-prefix-map={path}")).join(" ");
    cargo.env("CFLAGS", [C_FLAGS, &maps].join(" "));
    let folder = root.join("target/dist/build");
    cargo.env("CARGO_TARGET_DIR", &folder).args(["distribution", "--target", triple, "--"]);
    cargo.args(folded(triple));
    let (upper, lower) = (triple.to_uppercase().replace('-', "_"), triple.replace('-', "_"));
    let arch = triple.split('-').next().unwrap_or_default();
    if is_musl(triple) {
        let target = format!("--target={arch}-linux-musl -nostdlibinc -isystem {}", musl_headers(arch).display());
        cargo.env(format!("CC_{lower}"), CLANG).env(format!("CFLAGS_{lower}"), [C_FLAGS, &maps, &target].join(" "));
        cargo.env(format!("AR_{lower}"), "ar");
    } else if arch != std::env::consts::ARCH {
        let compiler = format!("{arch}-linux-gnu-gcc");
        cargo.env(format!("CARGO_TARGET_{upper}_LINKER"), &compiler).env(format!("CC_{lower}"), &compiler);
    }
    finish(&mut cargo)?;
    Ok(folder.join(triple).join("distribution/truetick"))
}

/// Splits the debug information of `built` off, into `folder`: debuggers find `truetick.debug` through the program's
/// debug link. Returns the stripped program.
fn split(
    shop: &Shop,
    target: &Target,
    built: &std::path::Path,
    (folder, build): (&std::path::Path, Build),
    record: &mut Record,
) -> anyhow::Result<PathBuf> {
    let (program, debug) = (folder.join("truetick"), folder.join("truetick.debug"));
    finish(target.tool("objcopy").arg("--only-keep-debug").arg(built).arg(&debug))?;
    finish(target.tool("strip").arg("-o").arg(&program).arg(built))?;
    // The link holds the name without a folder and a checksum of the file.
    finish(target.tool("objcopy").args(["--add-gnu-debuglink=truetick.debug", "truetick"]).current_dir(folder))?;
    let size = len(&program)?;
    // The release profile folds nothing and has no LTO: only what is distributed must be small.
    ensure!(build == Build::Release || size <= LEN_MAX, "{} has {size} bytes, at most {LEN_MAX}", shop.name(&program));
    let (name, hash) = (shop.name(&program), sha256(&program)?);
    record.done(format!("{name}: {size} bytes, SHA-256 {}", &hash[..16]));
    record.done(format!("{}: {} bytes", shop.name(&debug), len(&debug)?));
    Ok(program)
}

/// Starts the program in a root without any other file: it says what it is, serves STUN, and finds a name.
fn start(
    shop: &Shop,
    target: &Target,
    program: &std::path::Path,
    (build, record): (Build, &mut Record),
) -> anyhow::Result<()> {
    let mut root = Root::new(shop.empty("empty-root")?);
    root.add(program, "truetick")?;
    if target.is_foreign() {
        root.emulate(QEMU)?;
    }
    let version = output(&mut root.command("/truetick", &["--version", "--verbose"]))?;
    ensure!(version.contains(&format!("linux {}", target.arch)), "{version}");
    if build == Build::Release && !root.add_random()? {
        record.skipped(format!(
            "{}: not started: only root can make /dev/urandom, which this build needs",
            target.triple
        ));
        return Ok(());
    }
    let files = std::fs::read_dir(&root.folder)?.count();
    let mut server = root.command("/truetick", &["turn", "--listen", "127.0.0.1:0", "--user", "demo:demo"]);
    let serving = Serving::start(&mut server)?;
    let port = serving.port()?;
    let seen = output(&mut root.command("/truetick", &["stun", &format!("127.0.0.1:{port}")]))?;
    ensure!(seen.starts_with("127.0.0.1:"), "{seen}");
    record.done(format!("{}: starts and serves STUN in a root with {files} entries", target.triple));
    root.write("etc/hosts", "127.0.0.1 venue.test\n")?;
    let seen = output(&mut root.command("/truetick", &["stun", &format!("venue.test:{port}")]))?;
    ensure!(seen.starts_with("127.0.0.1:"), "{seen}");
    record.done(format!("{}: finds a name of /etc/hosts there", target.triple));
    drop(serving);
    Ok(())
}

/// Packs the program with licences, manual pages and completions.
fn archive(shop: &Shop, target: &Target, program: &std::path::Path, record: &mut Record) -> anyhow::Result<()> {
    let name = format!("truetick-{}-{}-linux", shop.version, target.arch);
    let staged = shop.empty("archive")?;
    let folder = staged.join(&name);
    documents(shop, &folder)?;
    std::fs::copy(program, folder.join("truetick"))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        std::fs::copy(shop.root.join(file), folder.join(file))?;
    }
    let archive = shop.folder.join(format!("{name}.tar.gz"));
    shop.pack(&staged, &archive, &[&name])?;
    record.done(format!("{}: {} bytes", shop.name(&archive), len(&archive)?));
    Ok(())
}

/// Writes manual pages to `folder`/man and completions to `folder`/completions.
pub(super) fn documents(shop: &Shop, folder: &std::path::Path) -> anyhow::Result<()> {
    let program = shop.folder.join(format!("truetick-{}-linux/truetick", std::env::consts::ARCH));
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    output(Command::new(&program).args(["man", "--out"]).arg(&man))?;
    for (shell, file) in [("bash", "truetick"), ("zsh", "_truetick"), ("fish", "truetick.fish")] {
        let text = output(Command::new(&program).args(["completions", shell]))?;
        std::fs::write(completions.join(file), text + "\n")?;
    }
    Ok(())
}
