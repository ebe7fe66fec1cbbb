//! Text printed at the start and at the end.

use std::fmt::Write as _;

use super::Running;
use tt_status::accounting::Accounting;
use tt_status::turn::IceServers;

/// Returns the addresses, the credential and how to stop. The page comes last, where the eye rests.
pub(super) fn banner(running: &Running, turn: &turn_server::TurnConfig, ice_servers: &IceServers) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "truetick {}", env!("CARGO_PKG_VERSION"));
    let listens = running.turn.listens().join(", ");
    let relays: Vec<_> = turn.relay_ips.iter().map(|relay| relay.external.to_string()).collect();
    let _ = writeln!(text, "  turn    {listens}, relaying on {}", relays.join(", "));
    let list = running.feeds.list();
    let (symbols, feeds) = (list.iter().map(|feed| feed.symbols.len()).sum::<usize>(), list.len());
    let _ = match running.simulated {
        Some(_) => {
            writeln!(text, "  market  {symbols} books of {feeds} simulated venues; no [[market.feeds]] in --config")
        }
        None => writeln!(text, "  market  {symbols} symbols of {feeds} configured feeds"),
    };
    for feed in list {
        let _ = writeln!(text, "          {} {}", feed.venue, feed.url);
    }
    let _ = writeln!(text, "  risk    a demonstration strategy sends intents to the gate through a ring");
    let _ = writeln!(text, "\nCredential of this run for new RTCPeerConnection(...):\n");
    for server in &ice_servers.ice_servers {
        let urls: Vec<_> = server.urls.iter().map(|url| format!("{url:?}")).collect();
        let _ = writeln!(text, "  {{ \"iceServers\": [{{");
        let _ = writeln!(text, "      \"urls\": [{}],", urls.join(", "));
        let _ = writeln!(text, "      \"username\": {:?},", server.username);
        let _ = writeln!(text, "      \"credential\": {:?}", server.credential);
        let _ = writeln!(text, "  }}] }}");
    }
    let _ = writeln!(text, "\nThe page: http://{}/   Press Ctrl-C to stop.", running.control.listen());
    text
}

/// Returns a line per engine: in = out + dropped, with the drops by name.
pub(super) fn farewell(ledgers: &[Accounting]) -> String {
    let mut text = String::from("\n");
    for ledger in ledgers {
        let Accounting { unit, input, out, dropped, closes, drops, .. } = ledger;
        let sign = if *closes { '=' } else { '\u{2260}' };
        let _ = write!(text, "{unit:>10}: {input} in {sign} {out} out + {dropped} dropped");
        for drop in drops.iter().filter(|drop| drop.count > 0) {
            let _ = write!(text, ", {} {}", drop.name, drop.count);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_status::accounting::Count;

    #[test]
    fn a_sum_that_does_not_close_is_marked() {
        let applied = || vec![Count { name: "applied", count: 2 }];
        let ledger = |input, drops| Accounting::new("frames", input, applied(), drops);
        let superseded = vec![Count { name: "superseded", count: 1 }, Count { name: "duplicate", count: 0 }];
        assert_eq!(
            farewell(&[ledger(3, superseded), ledger(3, vec![])]),
            "\n    frames: 3 in = 2 out + 1 dropped, superseded 1\n    frames: 3 in \u{2260} 2 out + 0 dropped\n"
        );
    }
}
