//! A server process on a separate core, and the kernel's counters of it.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

/// Setting: how long a server may take to end before it is killed.
const FAREWELL: Duration = Duration::from_secs(3);
/// Setting: preference of generator and servers alike.
const NICENESS: &str = "-15";
/// Starts the rest of the arguments in the control group of the first.
const IN_GROUP: &str = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;

/// Where control groups of memory are and what they use, in the first version and in the second.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.usage_in_bytes"), ("/sys/fs/cgroup", "memory.current")];

/// A running server; killed when dropped.
pub(crate) struct Process {
    child: Child,
    /// The file that has the use of its control group.
    use_of_group: Option<PathBuf>,
}

impl Process {
    /// Starts `command` where it may run on `cpu` only.
    pub(crate) fn start(mut command: Command, cpu: Option<usize>) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let name = format!("{}", command.get_program().display());
        // A child runs where the thread that starts it may run.
        let starter = thread::spawn(move || {
            if let Some(cpu) = cpu {
                tt_os::cpu::pin(cpu).with_context(|| format!("cannot use CPU {cpu}"))?;
            }
            command.spawn().map_err(anyhow::Error::from)
        });
        let child = starter.join().map_err(|_| anyhow::anyhow!("the starting thread panicked"))?;
        Ok(Self { child: child.with_context(|| format!("cannot start {name}"))?, use_of_group: None })
    }

    /// Starts `command` in a new control group, which accounts for its memory and for the kernel's. Needs root.
    pub(crate) fn start_in_group(command: &Command, cpu: Option<usize>) -> anyhow::Result<Self> {
        let found = GROUPS.iter().find(|(folder, file)| Path::new(folder).join(file).exists());
        let (folder, file) = found.context("no control groups of memory")?;
        let group = Path::new(folder).join(format!("turn-relay-{}", std::process::id()));
        // That of the server before is empty.
        let _ = fs::remove_dir(&group);
        fs::create_dir(&group).context("cannot make a control group")?;
        let mut inside = Command::new("sh");
        inside.args(["-c", IN_GROUP]).arg(&group);
        inside.arg(command.get_program()).args(command.get_args());
        let mut process = Self::start(inside, cpu)?;
        process.use_of_group = Some(group.join(file));
        Ok(process)
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// What its threads have used of CPUs, user and system; exact while none of them runs.
    pub(crate) fn cpu_ns(&self) -> anyhow::Result<u64> {
        let time = clock_getcpuclockid(self.pid()).and_then(|clock| clock.now()).context("no clock of the server")?;
        Ok(Duration::from(time).as_nanos() as u64)
    }

    /// Resident memory.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        let pid = self.child.id();
        // The sum over the mappings is exact; the kernel's running count may lag behind.
        let exact = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok().and_then(|text| kib(&text, "Rss:"));
        let kib = match exact {
            Some(kib) => kib,
            None => kib(&fs::read_to_string(format!("/proc/{pid}/status"))?, "VmRSS:").context("no VmRSS")?,
        };
        Ok(kib * 1024)
    }

    /// Memory of the process and of the kernel for it.
    pub(crate) fn all_bytes(&self) -> anyhow::Result<u64> {
        let file = self.use_of_group.as_ref().context("not in a control group")?;
        Ok(fs::read_to_string(file)?.trim().parse()?)
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill(self.pid(), Signal::SIGTERM);
        let asked = Instant::now();
        while !self.has_ended() && asked.elapsed() < FAREWELL {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Asks for this process, and for the servers that it starts, to be preferred to whatever else runs on the machine.
pub(crate) fn hurry() {
    let own = std::process::id().to_string();
    let mut renice = Command::new("renice");
    renice.args(["-n", NICENESS, "-p", &own]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Only root may; the notes say how it ended.
    let _ = renice.status();
}

/// Lets this process and the servers have as many descriptors as the system allows them.
pub(crate) fn raise_descriptors() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where it fails, a server of many allocations says so itself.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// The preference that this process has.
pub(crate) fn niceness() -> Option<i64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(16)?.parse().ok()
}

/// CPU time of the kernel's own thread for deferred network work on `cpu`: work of the server that is not charged to it.
pub(crate) fn deferred_ns(cpu: usize) -> Option<u64> {
    let name = format!("ksoftirqd/{cpu}\n");
    let found = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .find(|entry| fs::read_to_string(entry.path().join("comm")).is_ok_and(|comm| comm == name))?;
    fs::read_to_string(found.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
}

/// Counts the system calls of a process while it lives; `strace` slows the process, so nothing else is measured then.
pub(crate) struct CallCount {
    strace: Child,
}

impl CallCount {
    /// Attaches to every thread of `process`.
    pub(crate) fn attach(process: &Process) -> anyhow::Result<Self> {
        let pid = process.child.id();
        let mut command = Command::new("strace");
        command.args(["-c", "-f", "-p", &pid.to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut strace = command.stderr(Stdio::piped()).spawn().context("strace is not installed")?;
        let asked = Instant::now();
        let is_traced = || {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
            let mut threads = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("status")));
            Some(threads.all(|status| status.is_ok_and(|status| !status.contains("TracerPid:\t0\n"))))
        };
        while is_traced() != Some(true) {
            if !matches!(strace.try_wait(), Ok(None)) || asked.elapsed() > FAREWELL {
                let _ = strace.kill();
                let _ = strace.wait();
                bail!("strace cannot attach");
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { strace })
    }

    /// Detaches, and returns how many calls there were.
    pub(crate) fn detach(mut self) -> anyhow::Result<u64> {
        kill(Pid::from_raw(self.strace.id().cast_signed()), Signal::SIGINT)?;
        let mut report = String::new();
        if let Some(mut stderr) = self.strace.stderr.take() {
            stderr.read_to_string(&mut report)?;
        }
        self.strace.wait()?;
        total_calls(&report).context("strace reports no total")
    }
}

/// The `calls` column of the line `total`: `100.00    0.012345           3      4115       321 total`.
fn total_calls(report: &str) -> Option<u64> {
    let total = report.lines().find(|line| line.trim_end().ends_with(" total"))?;
    total.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total_calls;

    #[test]
    fn the_total_is_the_fourth_column_with_and_without_errors() {
        let head = "% time     seconds  usecs/call     calls    errors syscall\n------\n";
        assert_eq!(
            total_calls(&format!("{head}100.00    0.008216           2      4115       321 total\n")),
            Some(4115)
        );
        assert_eq!(
            total_calls(&format!("{head}100.00    0.008216           2      4115           total\n")),
            Some(4115)
        );
        assert_eq!(total_calls("strace: Process 1 attached\n"), None);
    }
}
