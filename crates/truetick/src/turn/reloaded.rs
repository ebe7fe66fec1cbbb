//! What a reload of `[turn]` applies, and what needs a restart.

use anyhow::ensure;
use turn_server::TurnConfig;

use crate::config::Config;
use crate::reload;

/// Rejects a change from the configuration of the start that needs a restart. `is_reloaded` names keys outside of `[turn]`
/// that a reload applies.
///
/// # Errors
/// The keys that need a restart.
pub(crate) fn check(
    started: &Config,
    next: &Config,
    (turn, realm): (&TurnConfig, &str),
    is_reloaded: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    ensure!(turn.realm == realm, "a restart is needed for turn.realm: the keys of users depend on it");
    reload::refuse_restart_keys(started, next, |key| match key.strip_prefix("turn.") {
        Some(key) => turn_server::is_reloaded(key),
        None => is_reloaded(key),
    })
}
