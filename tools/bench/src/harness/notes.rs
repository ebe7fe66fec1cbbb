//! Notes at the head of a file of runs: the machine and the build.

use std::path::Path;
use std::process::Command;

use tt_meter::Calibration;
use tt_os::machine::Machine;
use tt_os::readings::Readings;

/// Date and commit of a run.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// UTC.
    pub date: String,
    /// Of the workspace's sources, with `+` where they differ from it.
    pub commit: String,
}

impl Stamp {
    /// Now, and the commit in `root`.
    #[must_use]
    pub fn now(root: &Path) -> Self {
        let git = |arguments: &[&str]| output(Command::new("git").args(arguments).current_dir(root));
        let date = output(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]));
        let commit = git(&["rev-parse", "--short=12", "HEAD"]);
        let is_dirty = !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty();
        Self { date, commit: if is_dirty { format!("{commit}+") } else { commit } }
    }
}

/// Lines for the head of a file of runs.
#[must_use]
pub fn notes(stamp: &Stamp, calibration: &Calibration, seed: u64) -> Vec<String> {
    let machine = Machine::read();
    let unknown = || "unknown".to_owned();
    let governor = if machine.hypervisor { "hypervisor: unknown".to_owned() } else { unknown() };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let features = [
        ("avx2", cfg!(target_feature = "avx2")),
        ("bmi2", cfg!(target_feature = "bmi2")),
        ("pclmulqdq", cfg!(target_feature = "pclmulqdq")),
        ("avx512f", cfg!(target_feature = "avx512f")),
    ];
    let features: Vec<&str> = features.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
    let features = if features.is_empty() { "the target's least".to_owned() } else { features.join(" ") };
    vec![
        format!("run {}: commit {}, seed {seed}", stamp.date, stamp.commit),
        format!(
            "machine: {}, {} CPUs, kernel {}, clock source {}, counter {:.1} MHz, governor {}, load before {}",
            machine.cpu_model.unwrap_or_else(unknown),
            machine.cpus_available,
            machine.kernel.unwrap_or_else(unknown),
            machine.clocksource.unwrap_or_else(unknown),
            calibration.scale.cycles_per_s() / 1e6,
            machine.governor.unwrap_or(governor),
            load.trim(),
        ),
        format!("mitigations: {}", machine.mitigations.join("; ")),
        format!(
            "{}, profile {}, instruction sets: {features}",
            output(Command::new("rustc").arg("--version")),
            if cfg!(debug_assertions) { "dev: its times mean nothing" } else { "release" },
        ),
    ]
}

/// Per cent that the hypervisor took since `before`, and the readings now.
#[must_use]
pub fn steal(before: &Readings) -> (f64, Readings) {
    let now = Readings::take();
    (100.0 * now.since(before).steal_share(), now)
}

fn output(command: &mut Command) -> String {
    let output = command.output().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    output.unwrap_or_else(|_| "unknown".into())
}
