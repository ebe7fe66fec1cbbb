//! The control plane of `truetick market`.

use std::net::SocketAddr;
use std::sync::Arc;

use control::{HttpSection, State};
use market_feed::Runner;
use tt_os::clock::unix_now;

use crate::{control_state, kept_report};

/// What the page, the metrics and the API show besides the books, and where.
pub(super) struct Page {
    listen: SocketAddr,
    allowed_hosts: Vec<String>,
    report: Option<Arc<str>>,
}

impl Page {
    /// The page at `flag` or at `listen` of `[http]`; `None` if neither is present.
    ///
    /// # Errors
    /// A key of `[http]` that does not apply, or a report that cannot be read.
    pub(super) fn new(flag: Option<SocketAddr>, section: &HttpSection) -> anyhow::Result<Option<Self>> {
        let Some(listen) = flag.or(section.listen) else { return Ok(None) };
        anyhow::ensure!(
            section.api_token_file.is_none(),
            "market: api_token_file in [http] is for the allocations of a TURN server"
        );
        let report = section.report.as_deref().map(kept_report::read).transpose()?;
        Ok(Some(Self { listen, allowed_hosts: section.allowed_hosts.clone(), report }))
    }

    /// Serves the books of `running`.
    ///
    /// # Errors
    /// The address cannot be used.
    pub(super) fn serve(self, running: &Runner) -> anyhow::Result<control::Running> {
        let reader = running.reader();
        let state = State {
            machine: Some(control_state::machine()),
            market: Some(Arc::new(move || reader.snapshot(unix_now(), SAMPLED_ONE_IN))),
            market_streams: running.streams(),
            allowed_hosts: self.allowed_hosts,
            report: self.report,
            ..State::default()
        };
        control::start(self.listen, state)
    }
}

/// One pass in this many is timed, as `MarketConfig::default` says.
const SAMPLED_ONE_IN: u32 = 64;
