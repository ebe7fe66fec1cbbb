//! Reasons to read the configuration again: signals and requests over HTTP, for the thread that owns it.

use std::sync::mpsc;

use tokio::sync::oneshot;
use tt_os::shutdown::Signal;
use tt_status::reload::{Reload, ReloadError, ReloadFuture};

use crate::config::Config;

/// What comes from outside.
pub(crate) enum Event {
    Signal(Signal),
    Request(Reply),
}

/// Where the result of a requested reload goes.
pub(crate) struct Reply(oneshot::Sender<Result<(), ReloadError>>);

impl Reply {
    /// Answers with the result.
    pub(crate) fn send(self, result: &anyhow::Result<()>) {
        let result = result.as_ref().map_err(|error| ReloadError::Invalid(format!("{error:#}"))).copied();
        // A client that has gone misses nothing but the answer.
        let _ = self.0.send(result);
    }
}

impl From<Signal> for Event {
    fn from(signal: Signal) -> Self {
        Self::Signal(signal)
    }
}

/// Sends requests to the thread that owns the configuration.
pub(crate) struct Requests(pub(crate) mpsc::Sender<Event>);

impl Reload for Requests {
    fn reload(&self) -> ReloadFuture<'_> {
        Box::pin(async {
            let (reply, result) = oneshot::channel();
            self.0.send(Event::Request(Reply(reply))).map_err(|_| ReloadError::Stopping)?;
            result.await.map_err(|_| ReloadError::Stopping)?
        })
    }
}

/// Logs the result of a reload of `what`.
pub(crate) fn log(what: &str, result: &anyhow::Result<()>) {
    match result {
        Ok(()) => tracing::info!("{what}configuration reloaded"),
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "{what}configuration not reloaded; the old one stays in use")
        }
    }
}

/// Handles `events` with `reload` on a separate thread, from here on. The end of the program is for another thread.
///
/// # Errors
/// The thread cannot be started.
#[cfg(feature = "market")]
pub(crate) fn spawn(
    what: &'static str,
    events: mpsc::Receiver<Event>,
    mut reload: impl FnMut() -> anyhow::Result<()> + Send + 'static,
) -> std::io::Result<()> {
    let handle = move || {
        for event in events {
            let reply = match event {
                Event::Signal(Signal::Hangup) => None,
                Event::Signal(Signal::Terminate | Signal::Interrupt) => continue,
                Event::Request(reply) => Some(reply),
            };
            let result = reload();
            log(what, &result);
            if let Some(reply) = reply {
                reply.send(&result);
            }
        }
    };
    std::thread::Builder::new().name("reload".to_owned()).spawn(handle).map(drop)
}

/// Rejects a change of keys that `is_reloaded` does not name, but for `log.level`.
///
/// # Errors
/// The dotted names of these keys; a configuration has no text.
pub(crate) fn refuse_restart_keys(was: &Config, is: &Config, is_reloaded: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    let table = |config: &Config| -> anyhow::Result<toml::Table> { Ok(config.to_toml()?.parse()?) };
    let mut keys = Vec::new();
    add_changed("", &table(was)?, &table(is)?, &mut keys);
    keys.retain(|key| key != "log.level" && !is_reloaded(key));
    anyhow::ensure!(keys.is_empty(), "a restart is needed for {}", keys.join(" "));
    Ok(())
}

/// Adds the dotted names of the keys that differ, each after `prefix`.
fn add_changed(prefix: &str, was: &toml::Table, is: &toml::Table, keys: &mut Vec<String>) {
    let empty = toml::Table::new();
    let table = |value: Option<&toml::Value>| value.map_or(Some(empty.clone()), |value| value.as_table().cloned());
    for key in was.keys().chain(is.keys().filter(|key| !was.contains_key(*key))) {
        let (before, after) = (was.get(key), is.get(key));
        match (table(before), table(after)) {
            (Some(before), Some(after)) => add_changed(&format!("{prefix}{key}."), &before, &after, keys),
            _ if before != after => keys.push(format!("{prefix}{key}")),
            _ => {}
        }
    }
}
