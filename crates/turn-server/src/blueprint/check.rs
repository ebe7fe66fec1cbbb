//! Everything that a start does except serving.

use anyhow::Context as _;
use tt_turn::WorkerId;

use crate::config::TurnConfig;
use crate::listeners::Listeners;
use crate::records::Sink;
use crate::streams::HandshakePool;

use super::Blueprint;

/// Checks that [`start`](crate::start) would succeed: reads the certificate, binds the listeners and the first relay
/// sockets, and releases them; checks that the output of allocation records can be opened.
///
/// # Errors
/// As [`start`](crate::start).
pub fn check(config: &TurnConfig) -> anyhow::Result<()> {
    if let Some(output) = &config.cdr {
        Sink::check(output).with_context(|| format!("turn: --cdr: cannot open {output}"))?;
    }
    let listeners = Listeners::bind(config)?;
    let listen: Vec<_> = listeners.udp.iter().map(|group| group[0].local_addr()).collect();
    let (pool, _threads) = HandshakePool::new(&config.streams).context("turn: cannot poll sockets")?;
    let blueprint = Blueprint::new(config, &listen, pool)?;
    blueprint.bind_relays()?;
    for id in 0..u16::try_from(config.workers).unwrap_or(u16::MAX) {
        blueprint.relays(&mut blueprint.engine(WorkerId(id))?)?;
    }
    drop(listeners);
    Ok(())
}
