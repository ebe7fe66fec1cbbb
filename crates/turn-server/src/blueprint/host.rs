//! The addresses of this host, which peers must not reach.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use tt_net::{Poller, Waker};
use tt_os::addresses::{AddressWatch, own_addresses};

use crate::commands::{WorkerCommand, WorkerHandle, Workers};

use super::Blueprint;

/// First and last address of each range.
pub(super) type Ranges = Vec<(IpAddr, IpAddr)>;

pub(super) fn read() -> anyhow::Result<Ranges> {
    own_addresses().context("turn: cannot read the addresses of this machine")
}

/// Starts the thread that gives the workers new peer rules when the addresses of this host change. `watch` is older than
/// the rules that they have.
///
/// # Errors
/// A system call failed.
pub(crate) fn follow(
    blueprint: &Arc<Blueprint>,
    watch: AddressWatch,
    workers: Workers,
) -> anyhow::Result<(JoinHandle<()>, Waker)> {
    let mut poller = Poller::new(1).context("turn: cannot poll the addresses of this machine")?;
    poller.add_stream(&watch, 0).context("turn: cannot poll the addresses of this machine")?;
    let (waker, blueprint) = (poller.waker(), Arc::clone(blueprint));
    let run = move || {
        while !blueprint.stop.load(Ordering::Relaxed) {
            let followed = poller.wait(None).map(drop).and_then(|()| watch.take()).map_err(anyhow::Error::from);
            let followed =
                followed.and_then(|changed| if changed { blueprint.follow_host(&workers.all()) } else { Ok(()) });
            if let Err(error) = followed {
                tracing::error!(
                    error = format!("{error:#}"),
                    "the peer rules do not follow the addresses of this host"
                );
            }
        }
    };
    let named = std::thread::Builder::new().name("turn-addresses".to_owned());
    Ok((named.spawn(run).context("turn: cannot start a thread")?, waker))
}

impl Blueprint {
    /// Gives every worker the peer rules for the current addresses of this host, if those have changed.
    fn follow_host(&self, workers: &[WorkerHandle]) -> anyhow::Result<()> {
        let mut known = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let current = read()?;
        if *known == current {
            return Ok(());
        }
        let policies = self.policies(&self.in_force.load().config, &current);
        *known = current;
        for worker in workers {
            let (policy, further) = policies.clone();
            worker.send(WorkerCommand::new(move |server, _| drop(server.replace_policies(policy, further))));
        }
        tracing::info!(addresses = known.len(), "the addresses of this host have changed");
        Ok(())
    }
}
