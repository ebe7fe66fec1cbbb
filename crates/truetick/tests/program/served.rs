//! `truetick serve` under test, and a small HTTP client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// How long anything may take that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test: the one that `TRUETICK_PROGRAM` names, or the one of this build.
pub(crate) fn program() -> PathBuf {
    testkit::program(env!("CARGO_BIN_EXE_truetick"))
}

/// The process on free ports; killed when dropped.
pub(crate) struct Served {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    /// What it said before it was ready.
    pub(crate) banner: String,
    /// The control plane.
    pub(crate) http: SocketAddr,
}

/// An answer of the control plane.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Served {
    /// Starts it on free ports with additional `flags`, and waits for the last line of its banner.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::of(&[&["serve", "--http", "127.0.0.1:0", "--turn-listen", "127.0.0.1:0"], flags].concat())
    }

    /// Starts the program with `arguments`, and waits for the line with its page.
    pub(crate) fn of(arguments: &[&str]) -> Self {
        let mut child = Command::new(program())
            .args(["--log-level", "error"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = child.stdout.take().map(BufReader::new);
        let mut served = Self { child, stdout, banner: String::new(), http: SocketAddr::from(([0; 4], 0)) };
        loop {
            let mut line = String::new();
            let length = served.stdout.as_mut().expect("piped").read_line(&mut line).expect("UTF-8");
            assert_ne!(length, 0, "it ended before it was ready: {}", served.banner);
            served.banner.push_str(&line);
            if let Some(rest) = line.strip_prefix("The page: http://") {
                served.http = rest.split('/').next().expect("a piece").parse().expect("an address");
                return served;
            }
        }
    }

    /// Waits until every part is ready.
    pub(crate) fn wait_ready(&self) {
        let is_ready = testkit::wait_until(PATIENCE, || self.get("/readyz").status == 200);
        assert!(is_ready, "never ready: {}", self.get("/readyz").body);
    }

    /// Asks for `path`.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    /// The JSON at `path`, which needs the API token.
    pub(crate) fn json_with_token(&self, path: &str, token: &str) -> Value {
        let answer = self.get_with(path, &format!("Authorization: Bearer {token}\r\n"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{path}: {error}: {}", answer.body))
    }

    fn get_with(&self, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(self.http).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\n\r\n", self.http)
            .expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// The JSON at `path`, which is there.
    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{path}: {error}: {}", answer.body))
    }

    /// Asks for `path` until the answer `is_so`, and returns that one.
    pub(crate) fn wait(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut value = Value::Null;
        let became = testkit::wait_until(PATIENCE, || {
            value = self.json(path);
            is_so(&value)
        });
        assert!(became, "{path} stays {value}");
        value
    }

    /// The process's number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends `signal`.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process number"));
        kill(pid, signal).expect("it still runs");
    }

    /// Closes the reading end of its standard output, sends SIGTERM, and returns its status.
    pub(crate) fn end_unread(mut self) -> ExitStatus {
        drop(self.stdout.take());
        self.signal(Signal::SIGTERM);
        self.child.wait().expect("its end")
    }

    /// Its last words and its status, after a signal.
    pub(crate) fn end(mut self) -> (String, ExitStatus) {
        let mut rest = String::new();
        self.stdout.take().expect("piped").read_to_string(&mut rest).expect("UTF-8");
        let status = self.child.wait().expect("its end");
        (rest, status)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Already reaped after `end`; after a failed assertion it must not outlive the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
