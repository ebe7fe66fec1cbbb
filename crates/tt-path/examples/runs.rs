//! Prints the time of one run of the program in the kernel, with hot caches, and of the writes of a channel:
//! `cargo run --release -p tt-path --example runs`, as root or with CAP_BPF and CAP_NET_ADMIN.
//!
//! A run gets what the run before has made of the frame, so two paths lead to each other: one removes the ChannelData
//! header, the next adds it. Frames arrive at the loopback interface of `BPF_PROG_TEST_RUN`, which has no queues, no
//! wake-ups and no cold caches: the figures compare variants of the program on one machine, and are no rate of a server.

#[cfg(target_os = "linux")]
fn main() {
    if let Err(error) = on_linux::print() {
        println!("no runs: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod on_linux {
    use std::net::SocketAddr;

    use nix::time::{ClockId, clock_gettime};
    use tt_model::Nanos;
    use tt_path::{Capacity, Direction, NextHop, PathError, PathKey, PathSpec, Paths, PortKind, Proof, Reason};

    const LOOPBACK: u32 = 1;
    const CHANNEL: u16 = 0x4001;
    const BATCHES: usize = 41;
    /// Each run takes one from the hop limit, which begins with 255.
    const REPEAT: u32 = 250;

    pub(super) fn print() -> Result<(), PathError> {
        let paths = Paths::load(Capacity { paths: 4, meters: 1 })?;
        paths.prepare_runs();
        let mut writer = paths.writer()?;
        writer.set_hop(0, Some(NextHop { to: [0; 6], from: [4; 6], ifindex: LOOPBACK, mtu: 1500 }))?;
        paths.board().set_port(3478, PortKind::Listener);
        paths.board().set_epoch(1);
        paths.board().switch(true);
        println!("nanoseconds a run, {BATCHES} batches of {REPEAT}: least, median");
        for is_ip4 in [true, false] {
            let [strip, add] = specs(is_ip4);
            writer.open(&strip)?;
            writer.open(&add)?;
            paths.board().set_port(add.key.to.port(), PortKind::Relay);
            for data_len in [160, 1200] {
                let family = if is_ip4 { "IPv4" } else { "IPv6" };
                measure(&paths, &format!("{family}, {data_len} bytes"), &frame(&strip, data_len), 3)?;
            }
        }
        let mut other = frame(&specs(true)[0], 160);
        other[36..38].copy_from_slice(&53_u16.to_be_bytes());
        measure(&paths, "another port", &other, 2)?;
        other[12..14].copy_from_slice(&[0x08, 0x06]);
        measure(&paths, "another protocol", &other, 2)?;
        channels(&paths)
    }

    /// Opens and closes a channel again and again: two entries each way, four system calls.
    fn channels(paths: &Paths) -> Result<(), PathError> {
        let mut writer = paths.writer()?;
        let specs = specs(true);
        let mut times = Vec::with_capacity(BATCHES);
        for _ in 0..BATCHES {
            let started = cpu_time();
            for _ in 0..REPEAT {
                specs.iter().try_for_each(|spec| writer.open(spec))?;
                specs.iter().try_for_each(|spec| writer.close(&spec.key).map(drop))?;
            }
            times.push((cpu_time().0 - started.0) / u64::from(REPEAT));
        }
        times.sort_unstable();
        println!("{:<28} {:>5} {:>5}", "open and close of a channel", times[0], times[BATCHES / 2]);
        Ok(())
    }

    /// Runs batches; each must end with `action`.
    fn measure(paths: &Paths, name: &str, frame: &[u8], action: u32) -> Result<(), PathError> {
        let mut out = vec![0; frame.len() + 64];
        paths.board().beat(now());
        while action == 3 && paths.board().proof(LOOPBACK).proof == Proof::Proving {
            paths.run(frame, &mut out, 1)?;
        }
        let before = paths.reasons()?.of(Reason::Relayed);
        let mut times = Vec::with_capacity(BATCHES);
        for _ in 0..BATCHES {
            paths.board().beat(now());
            let run = paths.run(frame, &mut out, REPEAT)?;
            assert_eq!(run.action, action, "{name}: {:?}", paths.reasons());
            times.push(run.duration.as_nanos());
        }
        let relayed = paths.reasons()?.of(Reason::Relayed) - before;
        let expected = if action == 3 { BATCHES as u64 * u64::from(REPEAT) } else { 0 };
        assert_eq!(relayed, expected, "{name}: packets relayed");
        times.sort_unstable();
        println!("{name:<28} {:>5} {:>5}", times[0], times[BATCHES / 2]);
        Ok(())
    }

    fn now() -> Nanos {
        time_of(ClockId::CLOCK_MONOTONIC)
    }

    fn cpu_time() -> Nanos {
        time_of(ClockId::CLOCK_THREAD_CPUTIME_ID)
    }

    fn time_of(clock: ClockId) -> Nanos {
        let now = clock_gettime(clock).expect("every Linux has this clock");
        Nanos(now.tv_sec() as u64 * Nanos::PER_SECOND + now.tv_nsec() as u64)
    }

    /// A path that removes the header, and one that makes the same packet of its result again.
    fn specs(is_ip4: bool) -> [PathSpec; 2] {
        let texts = if is_ip4 {
            ["203.0.113.1:40000", "203.0.113.2:3478", "203.0.113.3:49152", "203.0.113.4:9000"]
        } else {
            ["[2001:db8::1]:40000", "[2001:db8::2]:3478", "[2001:db8::3]:49152", "[2001:db8::4]:9000"]
        };
        let [client, listener, relayed, peer] = texts.map(|text| text.parse::<SocketAddr>().expect("an address"));
        let spec = |direction, (from, to), (new_from, new_to), path| {
            let key = PathKey { direction, channel: CHANNEL, from, to, ifindex: LOOPBACK };
            PathSpec { key, new_from, new_to, path, meter: None, until: Nanos(u64::MAX), epoch: 1, hop: 0 }
        };
        let path = u32::from(is_ip4) * 2;
        [
            spec(Direction::ToPeer, (client, listener), (relayed, peer), path),
            spec(Direction::ToClient, (relayed, peer), (client, listener), path + 1),
        ]
    }

    /// A frame of the path, with a right IPv4 checksum and a right UDP checksum.
    fn frame(spec: &PathSpec, data_len: u16) -> Vec<u8> {
        let mut payload = [CHANNEL.to_be_bytes(), data_len.to_be_bytes()].concat();
        payload.resize(payload.len() + usize::from(data_len), 7);
        let udp_len = payload.len() as u16 + 8;
        let addresses = [spec.key.from, spec.key.to].map(|end| match end {
            SocketAddr::V4(end) => end.ip().octets().to_vec(),
            SocketAddr::V6(end) => end.ip().octets().to_vec(),
        });
        let ports = [spec.key.from, spec.key.to].map(|end| end.port().to_be_bytes()).concat();
        let mut udp = [&ports[..], &udp_len.to_be_bytes(), &[0, 0], &payload].concat();
        let csum = checksum(&[&addresses.concat(), &[0, 17], &udp_len.to_be_bytes(), &udp]);
        udp[6..8].copy_from_slice(&csum.to_be_bytes());
        let mut frame = vec![0; 12];
        if spec.key.from.is_ipv4() {
            let len = (20 + udp_len).to_be_bytes();
            let mut ip = [&[0x45, 0, len[0], len[1], 0, 0, 0x40, 0, 255, 17, 0, 0], &addresses.concat()[..]].concat();
            let csum = checksum(&[&ip]);
            ip[10..12].copy_from_slice(&csum.to_be_bytes());
            frame.extend([0x08, 0x00]);
            frame.extend(ip);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(udp_len.to_be_bytes());
            frame.extend([17, 255]);
            frame.extend(addresses.concat());
        }
        frame.extend(udp);
        frame
    }

    fn checksum(parts: &[&[u8]]) -> u16 {
        let bytes = parts.concat();
        let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
        let sum: u32 = words.sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }
}
