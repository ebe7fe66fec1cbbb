//! Many readers at a high rate.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use tt_os::clock::unix_now;

use super::child::Server;
use super::reader::{Kind, Reader, Received};
use super::{LOAD_AIM, OFFERED_HZ, READERS, interval};
use crate::harness::operation::Finished;
use crate::report::{Aim, Bootstrap, Row, RowText, Samples, Statistic, Unit};
use crate::rows::market::ENGINE;

/// A stream has ended when nothing came for this long.
const QUIET: Duration = Duration::from_millis(200);
/// A reader that has no snapshot by then gets none.
const SNAPSHOT: Duration = Duration::from_secs(5);
/// One reader in this many has its latencies kept.
const TIMED_ONE_IN: usize = 10;

/// Samples of all blocks.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Updates that readers received without a loss, million a second.
    rate: Samples,
    /// Time on a CPU for each message, of the server.
    cpu: Samples,
    latency: Samples,
    received: Received,
    /// Updates offered by the simulator's pace and by what the first reader received, a second.
    offered: Samples,
}

impl Load {
    /// Connects readers, lets updates flow for `span`, and waits until all have arrived.
    ///
    /// # Errors
    /// A silent loss, or a reader loses its connection.
    pub(super) fn run(&mut self, server: &Server, sim: &sim::Running, span: Duration) -> anyhow::Result<()> {
        let mut readers =
            (0..READERS).map(|_| with_snapshot(server.address)).collect::<anyhow::Result<Vec<Reader>>>()?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (index, reader) in readers.iter().enumerate() {
            epoll.add(reader.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, index as u64))?;
        }
        let mut latencies = Vec::new();
        drain(&epoll, &mut readers, QUIET, &mut latencies)?;
        let before: Vec<Received> = readers.iter().map(|reader| reader.received).collect();
        latencies.clear();
        let (cpu_before, begin) = (server.cpu_time()?, Instant::now());
        sim.set_rate(OFFERED_HZ);
        take(&epoll, &mut readers, begin + span, &mut latencies)?;
        sim.set_rate(0.0);
        // What is under way belongs to the rate, and so does its time.
        let elapsed = drain(&epoll, &mut readers, QUIET, &mut latencies)?.saturating_duration_since(begin);
        let cpu = server.cpu_time()?.saturating_sub(cpu_before);
        let mut all = Received::default();
        for (reader, before) in readers.iter().zip(&before) {
            let now = reader.received;
            all.messages += now.messages - before.messages;
            all.deltas += now.deltas - before.deltas;
            all.bytes += now.bytes - before.bytes;
            (all.gaps, all.lost) = (all.gaps + now.gaps, all.lost + now.lost);
        }
        ensure!(all.messages > 0, "no message has arrived");
        let seconds = elapsed.as_secs_f64();
        let delivered = if all.lost == 0 { all.deltas as f64 / seconds / 1e6 } else { 0.0 };
        self.rate.push_block(vec![delivered]);
        self.cpu.push_block(vec![cpu.as_secs_f64() * 1e9 / all.messages as f64]);
        self.latency.push_block(latencies);
        self.offered.push_block(vec![all.deltas as f64 / READERS as f64 / seconds]);
        self.received.messages += all.messages;
        self.received.deltas += all.deltas;
        self.received.bytes += all.bytes;
        (self.received.gaps, self.received.lost) = (self.received.gaps + all.gaps, self.received.lost + all.lost);
        Ok(())
    }

    /// The rows.
    pub(super) fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let Received { messages, deltas, gaps, lost, bytes } = self.received;
        let achieved = bootstrap.mean(&self.offered).as_ref().map(interval).unwrap_or_default();
        let counted = format!(
            "{READERS} readers, {OFFERED_HZ:.0} updates/s offered to each, {achieved} received; {messages} messages of \
             {} bytes, {deltas} of them updates, {gaps} gap marks for {lost} lost messages; each reader checks that \
             each message continues the one before",
            bytes / messages.max(1)
        );
        let texts = [
            RowText {
                name: "streams_100_readers_rate",
                engine: ENGINE,
                what: "updates of one book received by 100 readers on loopback, from `truetick market --http` after a \
                       simulator; a block in which a message was lost counts as none",
                unit: Unit::MillionPerS,
            },
            RowText {
                name: "streams_100_readers_cpu_ns",
                engine: ENGINE,
                what: "time on a CPU of the server's process for each message that a reader received, everything included",
                unit: Unit::Ns,
            },
            RowText {
                name: "streams_100_readers_ns",
                engine: ENGINE,
                what: "frame read by the server to message parsed by one of 100 readers in another process, sleeping",
                unit: Unit::Ns,
            },
        ];
        let samples = [&self.rate, &self.cpu, &self.latency];
        let row = |(text, samples): (RowText<'_>, &Samples)| {
            let mut row = Row::of(text, samples, 1, bootstrap)?;
            if text.unit == Unit::MillionPerS {
                row.aims.push(Aim { statistic: Statistic::Mean, at_most: LOAD_AIM });
            }
            row.notes.push(counted.clone());
            Some(Finished { row, samples: samples.clone() })
        };
        texts.into_iter().zip(samples).filter_map(row).collect()
    }
}

/// A reader that has its snapshot. It may come together with the answer of the handshake, and epoll does not report what
/// has been read.
fn with_snapshot(address: SocketAddr) -> anyhow::Result<Reader> {
    let mut reader = Reader::connect(address)?;
    reader.wait_for(SNAPSHOT)?.context("a reader got no snapshot")?;
    while reader.next_message()?.is_some() {}
    Ok(reader)
}

/// Takes what arrives until `end`.
fn take(epoll: &Epoll, readers: &mut [Reader], end: Instant, latencies: &mut Vec<f64>) -> anyhow::Result<bool> {
    let mut events = [EpollEvent::empty(); READERS];
    let mut has_received = false;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(has_received);
        }
        let count = epoll.wait(&mut events, EpollTimeout::try_from(left).unwrap_or(EpollTimeout::MAX))?;
        for event in &events[..count] {
            let index = event.data() as usize;
            let reader = &mut readers[index];
            reader.read()?;
            while let Some(message) = reader.next_message()? {
                has_received = true;
                if index.is_multiple_of(TIMED_ONE_IN) && message.kind == Kind::Delta {
                    latencies.push(unix_now().0.saturating_sub(message.ts_recv) as f64);
                }
            }
        }
    }
}

/// Takes what arrives until nothing does for `quiet`; returns when the last of it had arrived, at the latest.
fn drain(epoll: &Epoll, readers: &mut [Reader], quiet: Duration, latencies: &mut Vec<f64>) -> anyhow::Result<Instant> {
    let mut last = Instant::now();
    let step = quiet / 20;
    while last.elapsed() < quiet {
        if take(epoll, readers, Instant::now() + step, latencies)? {
            last = Instant::now();
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};

    use super::super::frame;
    use super::*;

    #[test]
    fn a_snapshot_may_come_together_with_the_answer_of_the_handshake() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let snapshot = frame::text(br#"{"type":"snapshot","seq":4,"update_id":70,"ts_recv":9}"#, false);
        let head = b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        let serving = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            assert!(client.read(&mut [0; 1_024]).unwrap() > 0);
            client.write_all(&[&head[..], &snapshot].concat()).unwrap();
            client
        });
        let reader = with_snapshot(address).unwrap();
        assert_eq!(reader.received.messages, 1);
        drop(serving.join().unwrap());
    }
}
