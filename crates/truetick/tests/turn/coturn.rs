//! Debian's coturn on loopback, as a server under test.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::server::{PASSWORD, USER};

const START_MAX: Duration = Duration::from_secs(60);

/// Debian's coturn, ended when dropped.
pub(crate) struct Coturn {
    child: Child,
    /// Its port, over UDP and TCP.
    pub(crate) port: u16,
}

impl Drop for Coturn {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Coturn {
    /// Starts it with [`USER`] and relays to loopback, and waits until it answers.
    pub(crate) fn start(program: &Path, folder: &Path, flags: &[&str]) -> Self {
        // It takes no port 0, so a port that was free a moment ago must do.
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let child = Command::new(program)
            .args(["-n", "-a", "-r", "example.org", "-L", "127.0.0.1", "-p", &port.to_string()])
            .args(["--user", &format!("{USER}:{PASSWORD}"), "--no-cli", "--no-tls", "--no-dtls"])
            .args(["--allow-loopback-peers", "--cli-password", "x", "--pidfile", &path("pid"), "-l", &path("log")])
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let coturn = Self { child: child.unwrap(), port };
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
        probe.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (begun, binding) = (Instant::now(), [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat());
        while probe.send_to(&binding, SocketAddr::from(([127, 0, 0, 1], port))).is_err()
            || probe.recv(&mut [0; 512]).is_err()
        {
            assert!(begun.elapsed() < START_MAX, "turnserver does not answer");
        }
        coturn
    }
}
