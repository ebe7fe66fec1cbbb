//! Tables and errors in the kernel.

use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::process::Command;

use nix::unistd::{Uid, setresuid};
use testkit::{Requirement, find_program, require};
use tt_model::{Nanos, SplitMix64};
use tt_path::dump::{Dump, Frame, Selection};
use tt_path::{Capacity, Direction, PathError, Paths, Reason, Steering};

use crate::relay::Relay;
use crate::subject::{IFINDEX, InKernel, Subject};
use crate::{check, require_kernel, vectors};

#[test]
fn a_full_table_is_named_and_a_closed_path_makes_room() {
    let Some(InKernel { paths: permitted, .. }) = require_kernel() else { return };
    drop(permitted);
    let paths = Paths::load(Capacity { paths: 2, meters: 1 }).unwrap();
    let mut writer = paths.writer().unwrap();
    let spec = |port: u16| {
        let [mut spec, _] = vectors::specs(&vectors::bindings(0)[0]);
        spec.key.from.set_port(port);
        (spec.path, spec.until) = (0, Nanos(1));
        spec
    };
    writer.open(&spec(1)).unwrap();
    writer.open(&spec(2)).unwrap();
    writer.open(&spec(2)).unwrap();
    // A table without preallocation may take a few more than its number on some kernels; it ends.
    let error = (3..100).find_map(|port| writer.open(&spec(port)).err()).unwrap();
    assert!(matches!(error, PathError::Map { map: "flows4", os: Some(7) }), "{error}");
    assert!(error.to_string().contains("raise the number of paths"));
    assert!(writer.close(&spec(1).key).unwrap());
    assert!(!writer.close(&spec(1).key).unwrap());
    writer.open(&spec(3)).unwrap();
    let mut outside = spec(3);
    outside.path = 2;
    assert!(matches!(writer.open(&outside), Err(PathError::Index { map: "tallies", index: 2 })));
    (outside.path, outside.meter) = (0, Some(1));
    assert!(matches!(writer.open(&outside), Err(PathError::Index { map: "meters", index: 1 })));
    (outside.meter, outside.hop) = (None, 256);
    assert!(matches!(writer.open(&outside), Err(PathError::Index { map: "hops", index: 256 })));
    assert!(matches!(writer.set_hop(256, None), Err(PathError::Index { map: "hops", index: 256 })));
}

#[test]
fn two_writers_write_the_same_tables() {
    let Some(mut subject) = require_kernel() else { return };
    let relay = vectors::relay(&mut subject);
    let mut other = subject.paths.writer().unwrap();
    let [spec, _] = vectors::specs(&relay.bindings[0]);
    assert!(other.close(&spec.key).unwrap());
    assert!(!subject.close(&spec.key));
}

#[test]
fn without_a_slot_nothing_is_relayed() {
    let Some(mut subject) = require_kernel() else { return };
    let relay = vectors::relay(&mut subject);
    let fresh = Paths::load(Capacity { paths: 64, meters: 16 }).unwrap();
    fresh.board().set_port(3478, tt_path::PortKind::Listener);
    let frame = vectors::frame(&relay.bindings[0], Direction::ToPeer, &[1; 100], &mut SplitMix64::new(3));
    let mut out = vec![0; 2_000];
    assert_eq!(fresh.run(&frame, &mut out, 1).unwrap().action, 2);
    assert_eq!(fresh.reasons().unwrap().of(Reason::Interface), 1);
    assert_eq!(fresh.board().proof(IFINDEX).proof, tt_path::Proof::Off);
}

#[test]
fn the_steering_program_is_accepted() {
    let Some(_) = require_kernel() else { return };
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    drop(Steering::load(&["192.0.2.1".parse().unwrap()], &[socket.as_fd()]).unwrap());
}

/// Root, who can give privileges up.
pub(crate) fn root() -> Result<(), &'static str> {
    if Uid::effective().is_root() { Ok(()) } else { Err("the process is not root's") }
}

/// The second part runs in a process with one program.
#[test]
fn a_dump_has_each_packet_as_received_and_as_sent() {
    let Some(mut subject) = require_kernel() else { return };
    let Some(()) = require(Requirement::Privilege, root()) else { return };
    if std::env::var_os(CHILD).is_none() {
        let test = "in_kernel::a_dump_has_each_packet_as_received_and_as_sent";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("dumped"), "{text}");
    } else {
        assert_dumps(&mut subject);
        eprintln!("dumped");
    }
}

/// A heartbeat a minute ahead: an emulated processor may take longer for a test than a heartbeat lasts.
fn beat_ahead(subject: &mut InKernel, relay: &mut Relay) {
    relay.heartbeat = subject.now() + 60 * Nanos::PER_SECOND;
    subject.set_meta(true, relay.epoch, relay.heartbeat);
}

fn assert_dumps(subject: &mut InKernel) {
    let mut relay = vectors::relay(subject);
    beat_ahead(subject, &mut relay);
    let program = own_program();
    let begin = |every, ifindex| Dump::begin(Selection { every, ifindex: Some(ifindex) }, &[program]);
    let mut dump = begin(1, IFINDEX).unwrap();
    assert_eq!(begin(1, IFINDEX).unwrap_err().to_string(), "another dump of the server's packets runs");
    let mut expected = Vec::new();
    for len in [100, 101, 1_300] {
        let frame = vectors::frame(&relay.bindings[0], Direction::ToPeer, &vec![1; len], &mut SplitMix64::new(3));
        while check::frame(subject, &mut relay, &frame) != Some(Reason::Relayed) {}
        expected.push(frame);
    }
    let mut take = || {
        dump.take(|packet| {
            let whole = |frame: Frame<'_>| (frame.len as usize == frame.bytes.len()).then(|| frame.bytes.to_vec());
            (packet.ifindex, whole(packet.received).unwrap(), whole(packet.sent).unwrap())
        })
    };
    for frame in &expected {
        let (ifindex, received, _) = take().unwrap();
        assert_eq!((ifindex, &received), (IFINDEX, frame));
    }
    // The identification of an IPv4 packet is another one each time.
    let done = subject.run(&expected[0]);
    assert_eq!(take(), Some((IFINDEX, expected[0].clone(), done.frame)));
    // What goes to the sockets is not copied, and leaves nothing behind.
    subject.run(&expected[0][..40]);
    assert_eq!((take(), dump.lost().unwrap()), (None, 0));
    // The ring has room for 1 MiB.
    (0..1_000).for_each(|_| drop(subject.run(&expected[2])));
    let taken = std::iter::from_fn(|| dump.take(|_| ())).count() as u64;
    assert_eq!((taken + dump.lost().unwrap(), taken > 300), (1_000, true), "{taken} taken");
    drop(dump);
    let state = subject.run(&expected[0]);

    // Each CPU counts for itself.
    let mut dump = begin(10, IFINDEX).unwrap();
    (0..100).for_each(|_| drop(subject.run(&expected[0])));
    let taken = std::iter::from_fn(|| dump.take(|_| ())).count();
    let cpus = std::thread::available_parallelism().unwrap().get();
    assert!((10..10 + cpus).contains(&taken), "{taken} taken");
    drop(dump);
    let mut other = begin(1, IFINDEX + 1).unwrap();
    assert_eq!(subject.run(&expected[0]).action, state.action);
    assert_eq!(other.take(|_| ()), None, "another interface");
    let gone = Dump::begin(Selection { every: 1, ifindex: None }, &[program, u32::MAX]);
    assert_eq!(gone.unwrap_err().to_string(), "the XDP program 4294967295 is gone");
}

/// The kernel's number of the XDP program of this process.
fn own_program() -> u32 {
    let files = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok());
    let mut programs = texts.filter(|text| text.contains("prog_type:\t6\n"));
    let text = programs.next().unwrap();
    text.lines().find_map(|line| line.strip_prefix("prog_id:")).unwrap().trim().parse().unwrap()
}

/// Starts this program again with a few of root's privileges.
#[test]
fn cap_bpf_and_cap_net_admin_are_enough_and_each_is_needed() {
    let Some(_) = require_kernel() else { return };
    let Some(()) = require(Requirement::Privilege, root()) else { return };
    let Some(setpriv) = require(Requirement::Program, find_program("setpriv", "util-linux")) else { return };
    let tests = ["in_kernel::two_writers_write_the_same_tables", "in_kernel::the_steering_program_is_accepted"];
    let cases = [("+bpf,+net_admin", true), ("+bpf", false), ("+net_admin", false)];
    for ((capabilities, is_enough), test) in cases.into_iter().flat_map(|case| tests.map(|test| (case, test))) {
        let mut command = Command::new(&setpriv);
        command.args(["--inh-caps", "-all", "--bounding-set", &format!("-all,{capabilities}")]);
        command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
        let output = command.env_remove("TRUETICK_SKIPS").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{capabilities}, {test}: {text}");
        assert_eq!(text.contains("is skipped: privilege: the kernel denies BPF"), !is_enough, "{capabilities}: {text}");
    }
}

pub(crate) const NOBODY: Uid = Uid::from_raw(65_534);
/// Names the process that a test starts for its own second part.
pub(crate) const CHILD: &str = "TT_PATH_TEST_CHILD";

/// The second part runs in a process that gives its privileges up.
#[test]
fn tables_stay_writable_without_privileges() {
    let Some(mut subject) = require_kernel() else { return };
    let Some(()) = require(Requirement::Privilege, root()) else { return };
    if std::env::var_os(CHILD).is_none() {
        let test = "in_kernel::tables_stay_writable_without_privileges";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("relayed without privileges"), "{text}");
    } else {
        let mut relay = vectors::relay(&mut subject);
        setresuid(NOBODY, NOBODY, NOBODY).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        for name in ["CapEff", "CapPrm"] {
            assert!(status.contains(&format!("{name}:\t0000000000000000")), "{status}");
        }
        assert_eq!(Paths::load(Capacity { paths: 1, meters: 1 }).err().unwrap().os_error(), Some(1));
        // Tables, shared memory and counts; the frames themselves are the test's, and running them needs no privilege.
        let [spec, _] = vectors::specs(&relay.bindings[0]);
        assert!(subject.close(&spec.key));
        subject.open(&spec);
        subject.set_hop(0, relay.hops[0]);
        let frame = vectors::frame(&relay.bindings[0], Direction::ToPeer, &[1; 100], &mut SplitMix64::new(3));
        beat_ahead(&mut subject, &mut relay);
        let mut last = None;
        for _ in 0..65 {
            last = check::frame(&mut subject, &mut relay, &frame);
        }
        assert_eq!(last, Some(Reason::Relayed));
        eprintln!("relayed without privileges");
    }
}
