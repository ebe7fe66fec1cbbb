//! Fills what has a bound before anything is watched: a buffer that is touched for the first time in the second hour looks
//! like growth, and is none.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::program::Program;

/// Senders: the kernel spreads them over the sockets of all workers.
const SENDERS: usize = 64;
/// The longest UDP payload over IPv4.
const LONGEST: usize = 65_507;
/// Rounds in which the server is stopped while all senders send: its next batch is as long as its socket buffer allows.
const ROUNDS: usize = 4;

/// Makes every worker of the server at `to` receive batches of the longest datagrams, and of the most datagrams.
pub(super) fn receive_buffers(server: &Program, to: SocketAddr) -> anyhow::Result<()> {
    let senders = (0..SENDERS).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>()?;
    for round in 0..ROUNDS {
        let datagram = vec![0; if round % 2 == 0 { LONGEST } else { 1 }];
        signal(server, "-STOP")?;
        let sent = senders.iter().cycle().take(4 * SENDERS).try_for_each(|from| from.send_to(&datagram, to).map(drop));
        signal(server, "-CONT")?;
        sent.context("a burst of datagrams")?;
    }
    Ok(())
}

fn signal(server: &Program, name: &str) -> anyhow::Result<()> {
    let status = Command::new("kill").args([name, &server.id().to_string()]).status().context("kill")?;
    ensure!(status.success(), "kill {name}: {status}");
    Ok(())
}
