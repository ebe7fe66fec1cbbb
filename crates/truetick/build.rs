//! Build information, printed with every measured figure.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    set_env("TRUETICK_RUSTC", &output(&rustc, &["--version"]).unwrap_or_else(|| "unknown".to_owned()));
    set_env("TRUETICK_PROFILE", &std::env::var("PROFILE").unwrap_or_default());
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // Paths of the machine that builds would make builds differ.
    let flags: Vec<&str> = flags.split('\u{1f}').filter(|flag| !flag.contains("remap-path-prefix")).collect();
    set_env("TRUETICK_FLAGS", &flags.join(" "));
    set_env(
        "TRUETICK_COMMIT",
        &output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned()),
    );
    let changes = output("git", &["status", "--porcelain", "--untracked-files=no"]);
    set_env("TRUETICK_DIRTY", if changes.is_none_or(|changes| changes.is_empty()) { "false" } else { "true" });

    // GNU ld and lld both know it. Line tables stay in the binary; compressed they take a quarter of the space.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        let to_linker = if flags.contains(&"-Clinker-flavor=ld.lld") { "" } else { "-Wl," };
        println!("cargo:rustc-link-arg-bins={to_linker}--compress-debug-sections=zlib");
    }
    for path in ["../../crates", "../../tools/sim", "../../Cargo.toml", "../../Cargo.lock", "build.rs"] {
        println!("cargo:rerun-if-changed={path}");
    }
    if let Some(log) = output("git", &["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
}

fn set_env(name: &str, value: &str) {
    println!("cargo:rustc-env={name}={value}");
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
