//! Orders of an operator to all workers: bans and drains.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tt_model::Nanos;
use tt_status::turn::{Ban, BanError, NoReply, Operator, OrderFuture};
use tt_turn::Server;

use crate::bans::range;
use crate::blueprint::Blueprint;
use crate::commands::Workers;

/// Gives orders to all workers.
#[derive(Debug)]
pub(crate) struct Orders {
    pub(crate) workers: Workers,
    pub(crate) blueprint: Arc<Blueprint>,
}

impl Orders {
    /// Runs `order` on every worker, and returns the sum of its results. All workers get it, also if one does not reply.
    async fn order(&self, order: impl Fn(&mut Server, Nanos) -> u64 + Clone + Send + 'static) -> Result<u64, NoReply> {
        let mut sum = Ok(0);
        for worker in self.workers.handles() {
            let reply = worker.order(order.clone()).await;
            sum = sum.and_then(|sum: u64| Ok(sum + reply?));
        }
        sum
    }

    /// Lets every worker follow the bans in force; returns the number of allocations that ended.
    async fn follow_bans(&self) -> Result<u64, NoReply> {
        let blueprint = Arc::clone(&self.blueprint);
        // Read when the order runs: of two changes at the same time, the later one is the last that a worker sees.
        self.order(move |server, now| u64::from(server.replace_bans(now, blueprint.bans.in_force()))).await
    }

    async fn ban(&self, source: &str, time: Duration) -> Result<(String, u64), BanError> {
        let range = range(source)?;
        self.blueprint.bans.add(range, self.blueprint.now(), time)?;
        let ended = self.follow_bans().await.map_err(|NoReply| BanError::NoReply)?;
        Ok((range.to_string(), ended))
    }

    async fn end_ban(&self, source: &str) -> Result<bool, BanError> {
        let ended = self.blueprint.bans.remove(range(source)?, self.blueprint.now());
        if ended {
            self.follow_bans().await.map_err(|NoReply| BanError::NoReply)?;
        }
        Ok(ended)
    }

    async fn drain(&self, alternates: Vec<SocketAddr>) -> Result<(), NoReply> {
        self.blueprint.keep_alternates(alternates.clone());
        let replied = self
            .order(move |server, _| {
                server.set_alternates(&alternates);
                0
            })
            .await;
        // Also without a reply: the worker gets the order once it runs again.
        self.blueprint.shared.drain();
        replied.map(drop)
    }
}

impl Operator for Orders {
    fn ban<'a>(&'a self, source: &'a str, time: Duration) -> OrderFuture<'a, Result<(String, u64), BanError>> {
        Box::pin(self.ban(source, time))
    }

    fn end_ban<'a>(&'a self, source: &'a str) -> OrderFuture<'a, Result<bool, BanError>> {
        Box::pin(self.end_ban(source))
    }

    fn bans(&self) -> Vec<Ban> {
        self.blueprint.bans.list(self.blueprint.now())
    }

    fn drain(&self, alternates: Vec<SocketAddr>) -> OrderFuture<'_, Result<(), NoReply>> {
        Box::pin(self.drain(alternates))
    }

    fn end_drain(&self) {
        self.blueprint.shared.end_drain();
    }
}
