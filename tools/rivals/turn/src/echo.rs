//! The floor: a process that sends back what comes in, one datagram a system call.

use std::net::{SocketAddr, UdpSocket};

use anyhow::Context as _;

/// Serves until it is killed.
pub(crate) fn serve(listen: SocketAddr) -> anyhow::Result<()> {
    let socket = UdpSocket::bind(listen).with_context(|| format!("cannot listen on {listen}"))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        // What the network refuses is lost, and the generator counts it.
        if let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..len], from);
        }
    }
}
