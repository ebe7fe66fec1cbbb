//! The control plane of `truetick market`.

use std::net::SocketAddr;
use std::sync::Arc;

use control::{ApiToken, HttpSection, State, kept_report};
use market_feed::Feeds;
use tt_os::clock::unix_now;
use tt_status::reload::Reload;

use super::Following;
use super::admin::Admin;
use crate::control_state;

/// What the page, the metrics and the API show besides the books, and where.
pub(super) struct Page {
    listen: SocketAddr,
    allowed_hosts: Vec<String>,
    report: Option<Arc<str>>,
    token: Option<ApiToken>,
    is_simulated: bool,
    /// What reads the file of the feeds again.
    reload: Option<Arc<dyn Reload>>,
}

impl Page {
    /// The page at the address of the flags or at `listen` of `[http]`; `None` if neither is present.
    ///
    /// # Errors
    /// A report or a token that cannot be read.
    pub(super) fn new(following: &Following, section: &HttpSection) -> anyhow::Result<Option<Self>> {
        let Some(listen) = following.http.or(section.listen) else { return Ok(None) };
        let token = control_state::api_token(None, section)?;
        let report = section.report.as_deref().map(|path| kept_report::read(kept_report::FIGURES, path)).transpose()?;
        let (allowed_hosts, is_simulated) = (section.allowed_hosts.clone(), following.is_simulated);
        Ok(Some(Self { listen, allowed_hosts, report, token, is_simulated, reload: None }))
    }

    /// The same page, which can have the file of the feeds read again.
    pub(super) fn with_reload(self, reload: Option<Arc<dyn Reload>>) -> Self {
        Self { reload, ..self }
    }

    /// Serves the books of `feeds`.
    ///
    /// # Errors
    /// The address cannot be used.
    pub(super) fn serve(self, feeds: &Feeds) -> anyhow::Result<control::Running> {
        let shown = feeds.clone();
        // A real venue among simulated ones would be called simulated.
        let admin = (!self.is_simulated).then(|| Arc::new(Admin(feeds.clone())) as Arc<_>);
        let state = State {
            machine: Some(control_state::machine()),
            market: Some(Arc::new(move || shown.snapshot(unix_now(), SAMPLED_ONE_IN))),
            market_streams: Some(feeds.streams()),
            feeds: admin,
            simulated: self.is_simulated,
            reload: self.reload,
            token: self.token,
            allowed_hosts: self.allowed_hosts,
            report: self.report,
            ..State::default()
        };
        control::start(self.listen, state)
    }
}

/// One pass in this many is timed, as `MarketConfig::default` says.
const SAMPLED_ONE_IN: u32 = 64;
