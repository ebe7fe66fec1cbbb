//! The built binary as a TURN server under test.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The name and the password that every test's server knows.
pub(crate) const USER: &str = "ann";
/// See [`USER`].
pub(crate) const PASSWORD: &str = "correct horse";

/// The program under test: the one that `TRUETICK_PROGRAM` names, or the one of this build.
pub(crate) fn program() -> PathBuf {
    testkit::program(env!("CARGO_BIN_EXE_truetick"))
}

/// Whether another program is under test than the one of this build.
pub(crate) fn is_given() -> bool {
    std::env::var_os("TRUETICK_PROGRAM").is_some()
}

/// `truetick turn` as a process; killed when dropped.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Where it listens over UDP, in the order of the flags.
    pub(crate) listen: Vec<SocketAddr>,
    /// Where it takes TCP.
    pub(crate) tcp: Vec<SocketAddr>,
    /// Where it takes TLS.
    pub(crate) tls: Vec<SocketAddr>,
    /// The control plane, where one was asked for.
    pub(crate) http: Option<SocketAddr>,
}

/// What the server says about its datagrams at its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Farewell {
    pub(crate) received: u64,
    pub(crate) out: u64,
    pub(crate) dropped: u64,
    /// The whole line, with the drops by name.
    pub(crate) line: String,
}

impl Server {
    /// Starts it with `flags` and waits until it says that it is ready.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::spawn(Command::new(program()), flags)
    }

    /// The same as a process that may have `descriptors` files and sockets, and no more.
    pub(crate) fn start_with_descriptors(descriptors: u32, flags: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"")]);
        shell.arg(program());
        Self::spawn(shell, flags)
    }

    /// The same on the kernel that `emulator` emulates.
    pub(crate) fn start_emulated(emulator: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(emulator);
        command.arg(program());
        Self::spawn(command, flags)
    }

    fn spawn(mut command: Command, flags: &[&str]) -> Self {
        let user = format!("{USER}:{PASSWORD}");
        let mut child = command
            .args(["--log-level", "error", "turn", "--user", &user])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut server = Self { child, stdout, listen: Vec::new(), tcp: Vec::new(), tls: Vec::new(), http: None };
        server.read_until_ready();
        server
    }

    fn read_until_ready(&mut self) {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).expect("UTF-8"), 0, "it ended before it was ready");
            let line = line.trim_end();
            if let Some(addr) = line.strip_prefix("listening on udp ") {
                self.listen.push(addr.parse().expect("an address"));
            } else if let Some(addr) = line.strip_prefix("listening on tcp ") {
                self.tcp.push(addr.parse().expect("an address"));
            } else if let Some(addr) = line.strip_prefix("listening on tls ") {
                self.tls.push(addr.parse().expect("an address"));
            } else if let Some(addr) = line.strip_prefix("http://") {
                self.http = Some(addr.parse().expect("an address"));
            } else if line == "ready" {
                return;
            }
        }
    }

    /// Bytes of its memory that are in RAM.
    pub(crate) fn resident_bytes(&self) -> u64 {
        testkit::memory_bytes(self.child.id(), "VmRSS")
    }

    /// The process's number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as Ctrl-C does, and returns what it counted.
    pub(crate) fn stop(mut self) -> Farewell {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process number"));
        kill(pid, Signal::SIGINT).expect("it still runs");
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("UTF-8");
        assert!(self.child.wait().expect("its end").success(), "it does not end cleanly: {rest}");
        let line = rest.lines().last().expect("a last line").to_owned();
        let number_after = |word: &str| -> u64 {
            let rest = line.split_once(word).unwrap_or_else(|| panic!("{line}")).1;
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next().expect("a piece");
            digits.parse().unwrap_or_else(|_| panic!("{line}"))
        };
        let (received, out, dropped) = (number_after("in "), number_after("out "), number_after("dropped "));
        assert_eq!(received, out + dropped, "{line}");
        Farewell { received, out, dropped, line }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already reaped after `stop`; after a failed assertion it must not outlive the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
