//! Everything that a start does except serving.

use anyhow::Context as _;
use tt_turn::WorkerId;
use turn_config::TurnConfig;

use crate::listeners::{self, Bound, Listening};
use crate::passed::PassedSockets;
use crate::records::Sink;
use crate::streams::HandshakePool;

use super::Blueprint;

/// Checks that [`start`](crate::start) would succeed: reads the certificate, binds the listeners and the first relay
/// sockets, and releases them; checks that the output of allocation records can be opened. Sockets of `passed` are not
/// bound, as in [`start_with`](crate::start_with).
///
/// # Errors
/// As [`start_with`](crate::start_with).
pub fn check(config: &TurnConfig, passed: PassedSockets) -> anyhow::Result<()> {
    if let Some(output) = &config.cdr {
        Sink::check(output).with_context(|| format!("turn: --cdr: cannot open {output}"))?;
    }
    let Bound { listening, sockets } = listeners::bind(config, &Listening::default(), passed, config.workers)?;
    let (pool, _threads) = HandshakePool::new(&config.streams).context("turn: cannot poll sockets")?;
    let blueprint = Blueprint::new(config, listening, pool)?;
    blueprint.bind_relays()?;
    for id in 0..u16::try_from(config.workers).unwrap_or(u16::MAX) {
        blueprint.relays(&mut blueprint.engine(WorkerId(id))?, None)?;
    }
    drop(sockets);
    Ok(())
}
