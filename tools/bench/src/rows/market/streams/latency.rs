//! The time from a frame that the server has read to its message in this process.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tt_os::clock::unix_now;

use super::LATENCY_HZ;
use super::child::{Echo, Server};
use super::echo::STAMP;
use super::frame;
use super::reader::{Kind, Reader};

/// How the reader waits. The server's threads sleep in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Sleeping,
    Spinning,
}

/// What a message comes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Server,
    Echo,
}

impl Path {
    pub(super) const ALL: [Self; 2] = [Self::Server, Self::Echo];

    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Server => {
                "frame read by `truetick market --http` to its message of /ws/orderbook read by another process, on \
                 loopback: engine, book of the streams, JSON, WebSocket"
            }
            Self::Echo => {
                "the same messages through a WebSocket server of another process that echoes: frame read to message read"
            }
        }
    }
}

impl Mode {
    pub(super) const ALL: [Self; 2] = [Self::Sleeping, Self::Spinning];

    pub(super) const fn name(self, path: Path) -> &'static str {
        match (self, path) {
            (Self::Sleeping, Path::Server) => "streams_sleeping_ns",
            (Self::Sleeping, Path::Echo) => "streams_echo_sleeping_ns",
            (Self::Spinning, Path::Server) => "streams_spinning_ns",
            (Self::Spinning, Path::Echo) => "streams_echo_spinning_ns",
        }
    }

    pub(super) const fn ratio_name(self) -> &'static str {
        match self {
            Self::Sleeping => "streams_sleeping_ratio",
            Self::Spinning => "streams_spinning_ratio",
        }
    }

    pub(super) fn note(self) -> String {
        let how = match self {
            Self::Sleeping => "the reader sleeps",
            Self::Spinning => "the reader spins, the server's threads sleep",
        };
        format!("{how}; one reader, {LATENCY_HZ:.0} updates/s; nothing is pinned; both processes read the same clock")
    }

    /// Waits until `reader` has read something; `false` after `limit`.
    fn wait(self, reader: &mut Reader, limit: Duration) -> anyhow::Result<bool> {
        let begin = Instant::now();
        while begin.elapsed() < limit {
            match self {
                Self::Sleeping if !reader.sleep(limit.saturating_sub(begin.elapsed()))? => return Ok(false),
                Self::Sleeping | Self::Spinning => {}
            }
            if reader.read()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Nanoseconds of each update that arrives within `span`, and the messages.
pub(super) fn of_server(
    server: &Server,
    sim: &sim::Running,
    mode: Mode,
    span: Duration,
) -> anyhow::Result<(Vec<f64>, Vec<Vec<u8>>)> {
    let mut reader = Reader::connect(server.address)?;
    reader.wait_for(Duration::from_secs(5))?.context("no snapshot")?;
    let (mut times, mut messages) = (Vec::new(), Vec::new());
    sim.set_rate(LATENCY_HZ);
    let end = Instant::now() + span;
    while Instant::now() < end {
        if !mode.wait(&mut reader, Duration::from_secs(1))? {
            continue;
        }
        let arrived = unix_now().0;
        while let Some((message, payload)) = reader.next_with_payload()? {
            if message.kind == Kind::Delta {
                times.push(arrived.saturating_sub(message.ts_recv) as f64);
                messages.push(payload);
            }
        }
    }
    sim.set_rate(0.0);
    ensure!(reader.received.gaps == 0, "a reader that does nothing else has lost messages");
    Ok((times, messages))
}

/// The same of the echo server with `messages`, one after the other at the same pace. A thread that does nothing else
/// writes them, as the simulator's does: it keeps no processor awake for the reader.
pub(super) fn of_echo(echo: &mut Echo, messages: &[Vec<u8>], mode: Mode) -> anyhow::Result<Vec<f64>> {
    let mut writer = echo.reader.writer()?;
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            let (pause, mut next) = (Duration::from_secs_f64(1.0 / LATENCY_HZ), Instant::now());
            messages.iter().try_for_each(|message| {
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
                next += pause;
                // The digits of the time make it as long as it was.
                writer.write_all(&frame::text(message.get(STAMP..).unwrap_or_default(), true))
            })
        });
        let times = echoed(&mut echo.reader, messages.len(), mode);
        writing.join().map_err(|_| anyhow::anyhow!("the writer's thread has panicked"))??;
        times
    })
}

/// Nanoseconds of each of the next `count` messages of the echo server.
fn echoed(reader: &mut Reader, count: usize, mode: Mode) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::with_capacity(count);
    while times.len() < count {
        ensure!(mode.wait(reader, Duration::from_secs(5))?, "no echo");
        let arrived = unix_now().0;
        while let Some(payload) = reader.next_payload()? {
            let digits = payload.first_chunk::<STAMP>().context("an echo without its time")?;
            let read: u64 = std::str::from_utf8(digits)?.parse()?;
            times.push(arrived.saturating_sub(read) as f64);
        }
    }
    Ok(times)
}
