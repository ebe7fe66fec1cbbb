//! Writes packets that the kernel path relays as a pcap file: tcpdump sees none of them.

#[cfg(feature = "command-line")]
pub mod command;
mod pcap;

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tt_model::Nanos;
use tt_os::clock::{monotonic, unix_now};
use tt_path::dump::{Dump, Packet, Selection};
use tt_path::survey::{self, InterfaceProgram};

/// Interval at which the end of the dump is looked for.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Interval at which the programs are looked for.
const LOOK_EVERY: Nanos = Nanos::from_millis(1_000);

/// Which form of a relayed packet is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As received, and as sent.
    Both,
    /// As it arrives.
    Received,
    /// As it leaves.
    Sent,
}

/// Which packets are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Where they arrive; `None`: on any interface with the program of a server.
    pub interface: Option<String>,
    /// One in so many of each CPU, at least 1.
    pub every: u64,
    /// Most packets.
    pub count: Option<u64>,
    /// As received, as sent, or both.
    pub form: Form,
}

/// Why a dump has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was stopped, or has all packets that were wanted.
    Done,
    /// The reader of the output has gone.
    Unread,
    /// No interface has its program any more.
    Detached,
}

/// Result of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// Packets written.
    pub packets: u64,
    /// Packets that were to be written and found no room.
    pub lost: u64,
    /// Time in which nothing was copied because this process did not run.
    pub paused: Duration,
    /// Why it has ended.
    pub end: End,
}

/// A dump that has begun.
#[derive(Debug)]
pub struct PathDump {
    dump: Dump,
    programs: Vec<InterfaceProgram>,
    count: u64,
    form: Form,
    /// Unix time less CLOCK_MONOTONIC.
    origin: u64,
}

impl PathDump {
    /// Has packets of the servers in this network namespace copied.
    ///
    /// # Errors
    /// There is none, or the kernel denies it.
    pub fn begin(wanted: &Wanted) -> anyhow::Result<Self> {
        let programs = programs(wanted.interface.as_deref())?;
        let ifindex = wanted.interface.as_ref().and(programs.first()).map(|program| program.ifindex);
        let mut ids: Vec<u32> = programs.iter().map(|program| program.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let dump = Dump::begin(Selection { every: wanted.every, ifindex }, &ids)?;
        let origin = unix_now().0.saturating_sub(monotonic().0);
        Ok(Self { dump, programs, count: wanted.count.unwrap_or(u64::MAX), form: wanted.form, origin })
    }

    /// Returns the names of the interfaces.
    #[must_use]
    pub fn interfaces(&self) -> String {
        self.programs.iter().map(|program| program.interface.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Writes packets until there are enough, or `is_stopped`.
    ///
    /// # Errors
    /// The output cannot be written, or the kernel denies access.
    pub fn write(mut self, out: &mut dyn Write, is_stopped: &dyn Fn() -> bool) -> anyhow::Result<Dumped> {
        let mut packets = 0;
        let end = match self.write_packets(out, is_stopped, &mut packets) {
            Err(error) if is_unread(&error) => End::Unread,
            written => written?,
        };
        Ok(Dumped { packets, lost: self.dump.lost()?, paused: self.dump.paused(), end })
    }

    fn write_packets(
        &mut self,
        out: &mut dyn Write,
        is_stopped: &dyn Fn() -> bool,
        packets: &mut u64,
    ) -> anyhow::Result<End> {
        out.write_all(&pcap::header())?;
        let (mut look_at, mut is_ending) = (monotonic(), false);
        loop {
            if !is_ending && is_stopped() {
                // What is in the ring is written.
                self.dump.stop();
                is_ending = true;
            }
            if let Some(written) = self.dump.take(|packet| write_packet(out, &packet, self.form, self.origin)) {
                written?;
                *packets += 1;
                if *packets < self.count {
                    continue;
                }
                is_ending = true;
            }
            out.flush()?;
            if is_ending {
                return Ok(End::Done);
            }
            if monotonic() >= look_at {
                look_at = Nanos(monotonic().0 + LOOK_EVERY.0);
                let now = survey::programs()?;
                if !self.programs.iter().any(|program| now.contains(program)) {
                    return Ok(End::Detached);
                }
            }
            self.dump.wait(WAIT_MAX).context("cannot wait for packets")?;
        }
    }
}

/// Writes the frames of a packet. Stamps are those of CLOCK_MONOTONIC, `origin` later.
fn write_packet(out: &mut dyn Write, packet: &Packet<'_>, form: Form, origin: u64) -> io::Result<()> {
    let frames = [packet.received, packet.sent];
    let frames = match form {
        Form::Both => &frames[..],
        Form::Received => &frames[..1],
        Form::Sent => &frames[1..],
    };
    for frame in frames {
        out.write_all(&pcap::frame_header(frame, Nanos(frame.at.0 + origin)))?;
        out.write_all(frame.bytes)?;
    }
    Ok(())
}

/// Finds the programs of an interface, or of all.
fn programs(interface: Option<&str>) -> anyhow::Result<Vec<InterfaceProgram>> {
    let mut programs = survey::programs()?;
    if let Some(name) = interface {
        programs.retain(|program| program.interface == name);
        if programs.is_empty() {
            survey::survey(name)?;
            bail!("no XDP program is on {name}: `truetick doctor paths {name}` says why");
        }
    }
    if programs.is_empty() {
        bail!(
            "no interface has an XDP program: run this in the server's network namespace; `truetick doctor paths` says more"
        );
    }
    Ok(programs)
}

fn is_unread(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
