//! What a reload of `[turn]` applies, and what needs a restart.

use crate::config::Config;
use crate::reload;

/// Rejects a change from the configuration of the start that needs a restart. `is_reloaded` names keys outside of `[turn]`
/// that a reload applies.
///
/// # Errors
/// The keys that need a restart.
pub(crate) fn check(started: &Config, next: &Config, is_reloaded: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    reload::refuse_restart_keys(started, next, |key| match key.strip_prefix("turn.") {
        Some(key) => turn_server::is_reloaded(key),
        None => is_reloaded(key),
    })
}
