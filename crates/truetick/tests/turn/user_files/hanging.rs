//! User files on a file system that does not respond, as one of a dead network server: FUSE without a daemon.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::Signal;
use testkit::{Requirement, measured, require};

use super::waits_until;
use crate::operators::operated::{Operated, PATIENCE};
use crate::server::{is_given, program};

/// A file may take 5 s; a reload gives up at the first that takes longer.
const FILE_MAX: Duration = Duration::from_secs(5);
/// Reloads that are asked for while one hangs.
const RELOADS: usize = 5;

/// A mount namespace with a file system whose every file hangs; gone when dropped.
struct Unresponsive {
    namespace: File,
    /// No daemon reads from it. When it is closed, what hangs fails.
    _device: File,
    folder: tempfile::TempDir,
}

impl Unresponsive {
    /// Mounts it; an error is the reason for a skip.
    fn mount() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let make = || -> nix::Result<()> {
            unshare(CloneFlags::CLONE_NEWNS)?;
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
            mount(Some("test"), folder.path(), Some("fuse"), MsFlags::empty(), Some(options.as_str()))
        };
        let make_and_open = || {
            make().map_err(|error| format!("a FUSE mount: {error}"))?;
            File::open("/proc/thread-self/ns/mnt").map_err(|error| error.to_string())
        };
        let namespace = thread::scope(|scope| scope.spawn(make_and_open).join().expect("it does not panic"))?;
        Ok(Self { namespace, _device: device, folder })
    }

    fn user_file(&self) -> PathBuf {
        self.folder.path().join("users")
    }

    /// Runs `work` on a thread of the namespace; processes that it starts live there too.
    fn on<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let enter_and_work = || {
            unshare(CloneFlags::CLONE_FS).expect("a thread may have its own folder");
            setns(&self.namespace, CloneFlags::CLONE_NEWNS).expect("it was made by this process");
            work()
        };
        thread::scope(|scope| scope.spawn(enter_and_work).join().expect("it does not panic"))
    }
}

fn assert_served(server: &Operated) {
    let mut client = server.client("ann");
    client.allocate().expect("the users of before are known");
    assert_eq!(client.refresh(0), 0);
}

#[test]
fn a_reload_of_users_that_hang_holds_up_no_client_and_no_end() {
    let Some(hanging) = require(Requirement::Privilege, Unresponsive::mount()) else { return };
    let server = hanging.on(|| Operated::start("", &[]));
    let (users, before) = (hanging.user_file(), server.folder().join("users"));
    server.edit(|text| text.replace(before.to_str().unwrap(), users.to_str().unwrap()));
    let started = Instant::now();
    server.signal(Signal::SIGHUP);
    assert_served(&server);
    let waits = waits_until(&server, || server.log().contains("not reloaded"));
    let named_after = started.elapsed();
    let log = server.log();
    assert!(log.contains(&format!("cannot read {}: its file system does not respond", users.display())), "{log}");
    assert!(named_after >= FILE_MAX, "it did not hang: {named_after:?}");
    // More come while one hangs, as those of a script that repeats them: one reload is for all.
    for _ in 0..RELOADS {
        server.signal(Signal::SIGHUP);
        assert_served(&server);
    }
    server.wait_log("not reloaded", 2);
    let asked = Instant::now();
    server.signal(Signal::SIGTERM);
    let (status, log) = server.ended();
    let ended_after = asked.elapsed();
    assert!(status.success() && log.contains("drained"), "{log}");
    assert!(log.matches("not reloaded").count() <= 3, "{log}");
    assert!(ended_after < FILE_MAX + FILE_MAX / 2 || !is_given(), "{ended_after:?}");
    let (median, longest) = (waits.whole[waits.whole.len() / 2], waits.whole[waits.whole.len() - 1]);
    measured(
        "files that hang",
        format_args!(
            "named after {named_after:.1?}; {} Bindings meanwhile, median {median:.1?}, longest {longest:.1?}; ended \
             {ended_after:.1?} after SIGTERM",
            waits.whole.len()
        ),
    );
}

#[test]
fn a_start_with_users_that_hang_names_the_file() {
    let Some(hanging) = require(Requirement::Privilege, Unresponsive::mount()) else { return };
    let users = hanging.user_file();
    for check in [&[][..], &["--check-config"]] {
        let flags = ["turn", "--listen", "127.0.0.1:0", "--user-file", users.to_str().unwrap()];
        let mut command = Command::new(program());
        command.args(flags).args(check).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let output = hanging.on(|| command.output().unwrap());
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(line.contains(&format!("{}: its file system does not respond", users.display())), "{line}");
        assert!((FILE_MAX..PATIENCE).contains(&started.elapsed()), "{:?}", started.elapsed());
    }
}
