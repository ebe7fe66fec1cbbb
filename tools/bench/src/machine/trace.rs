//! What the kernel's trace says kept a CPU busy: interrupts, soft interrupts and other threads, by name.
//!
//! The events are those of tracefs (Documentation/trace/ftrace.rst), stamped with the TSC, in a buffer that nothing else
//! writes to and that goes when this ends.

mod events;
mod osnoise;

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

pub use events::Busy;
use osnoise::Osnoise;

/// The kernel mounts tracefs here.
const MOUNT_POINT: &str = "/sys/kernel/tracing";
/// Buffer of each CPU: some thousand events a second, for ten seconds.
const BUFFER_KIB: u32 = 2_048;
const INSTANCE: &str = "truetick-";
/// Events and groups of events; those that a kernel lacks are left out.
const EVENTS: [&str; 6] = [
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq_vectors",
    "sched/sched_switch",
];

/// A trace of all CPUs, off until [`turn`](Self::turn) is called.
#[derive(Debug)]
pub struct Trace {
    /// Keeps the mount where it is only this process's.
    root: File,
    folder: PathBuf,
    /// The tracer osnoise, or why it is not used.
    osnoise: Result<Osnoise, String>,
}

impl Trace {
    /// Makes an empty trace with a buffer of its process.
    ///
    /// # Errors
    /// There is no tracefs, this process may not use it, or it does not stamp with the TSC.
    pub fn new() -> io::Result<Self> {
        let root = if Path::new(MOUNT_POINT).join("trace_clock").exists() {
            File::open(MOUNT_POINT)?
        } else {
            mounted_privately()?
        };
        let instances = PathBuf::from(format!("/proc/self/fd/{}/instances", root.as_raw_fd()));
        remove_leftovers(&instances);
        let folder = instances.join(format!("{INSTANCE}{}", std::process::id()));
        fs::create_dir(&folder)?;
        let mut trace = Self { root, folder, osnoise: Err(String::new()) };
        trace.turn(false)?;
        trace.set("trace_clock", "x86-tsc")?;
        trace.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        for event in EVENTS {
            match trace.set(&format!("events/{event}/enable"), "1") {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                set => set?,
            }
        }
        trace.osnoise = Osnoise::start(&trace.top(), &trace.folder);
        Ok(trace)
    }

    /// Why the tracer osnoise is not used; `None` where it is.
    #[must_use]
    pub fn without_osnoise(&self) -> Option<&str> {
        self.osnoise.as_ref().err().map(String::as_str)
    }

    fn top(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.root.as_raw_fd()))
    }

    /// Turns it on or off.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn turn(&self, is_on: bool) -> io::Result<()> {
        self.set("tracing_on", if is_on { "1" } else { "0" })
    }

    /// Reads what was recorded, and whether the buffer held all of it. `cycles_per_ns` are the TSC's.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read(&self, cycles_per_ns: f64) -> io::Result<(Vec<Busy>, bool)> {
        // What a thread is called is not always UTF-8.
        let text = fs::read(self.folder.join("trace"))?;
        let own = fs::read_to_string("/proc/self/comm")?;
        Ok(events::read(&String::from_utf8_lossy(&text), own.trim_end(), cycles_per_ns))
    }

    fn set(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.folder.join(name), value)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if let Ok(osnoise) = &self.osnoise {
            osnoise.stop(&self.top(), &self.folder);
        }
        // What is left here goes when the next trace is made.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Mounts tracefs where only the holder of the returned folder sees it.
fn mounted_privately() -> io::Result<File> {
    let mounted = thread::spawn(|| {
        unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS)?;
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
        mount(Some("tracefs"), MOUNT_POINT, Some("tracefs"), MsFlags::empty(), None::<&str>)?;
        File::open(MOUNT_POINT)
    });
    mounted.join().unwrap_or_else(|_| Err(io::Error::other("the thread that mounts tracefs panicked")))
}

/// Removes the buffers of processes that were killed.
fn remove_leftovers(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(INSTANCE));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Another process may do the same.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
