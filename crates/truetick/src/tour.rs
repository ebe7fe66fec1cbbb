//! `truetick demo`: a call relayed, faults caught, orders refused, on this machine, with its figures.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sim::Fault;
use tt_os::shutdown::Shutdown;
use tt_os::stdout;
use tt_status::accounting::Quantiles;
use tt_status::market::Book;
use turn_check::Allocation;

use crate::serve::Demonstrated;

/// Flags of `truetick demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Give up after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    seconds: f64,
}

/// Payloads of the call: 20 ms of speech each, 160 bytes.
const PAYLOADS: usize = 100;
const PAYLOAD: [u8; 160] = [0xD5; 160];
/// Interval between two payloads; ten times as fast as speech, so that the demonstration stays short.
const PAYLOAD_EVERY: Duration = Duration::from_millis(2);
/// Faults at one book, one after the other, and what they are called.
const FAULTS: [(Fault, &str); 3] =
    [(Fault::Drop, "an update lost"), (Fault::FlipDigit, "a digit changed"), (Fault::Swap, "two updates swapped")];
/// The proof by a checksum in each message: any fault is seen in the message that has it.
const PROOF: &str = "crc";
/// Refused orders that are shown.
const ORDERS: usize = 3;
/// Interval at which state is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Runs the demonstration; status 1 if one of its three parts did not happen.
///
/// # Errors
/// Something cannot be started.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let most = Duration::try_from_secs_f64(args.seconds).context("--seconds")?;
    let shutdown = Shutdown::on_signals().context("demo: cannot catch signals")?;
    let tour = Tour { deadline: Instant::now() + most, shutdown, is_terminal: io::stdout().is_terminal() };
    stdout::write("All on this machine, with simulated venues. The same code as `truetick serve`.\n\n");
    let engines = Demonstrated::start(&tour.shutdown)?;
    let parts = [
        ("A call is relayed", tour.relay(&engines)),
        ("A fault is caught", tour.catch_faults(&engines)),
        ("An order is refused", tour.refuse_orders(&engines)),
    ];
    let mut text = String::new();
    for (part, outcome) in &parts {
        // Writing to a String cannot fail.
        let _ = match outcome {
            Ok(()) => writeln!(text, "{part}: yes"),
            Err(error) => writeln!(text, "{part}: NO, {error:#}"),
        };
    }
    stdout::write(&format!("{text}{}", engines.stop()));
    stdout::write("Next: truetick serve shows all of it on a page.\n");
    Ok(if parts.iter().all(|(_, outcome)| outcome.is_ok()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Tour {
    deadline: Instant,
    shutdown: Shutdown,
    is_terminal: bool,
}

impl Tour {
    /// Waits until `look` finds something.
    fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            self.check(what)?;
            thread::park_timeout(LOOK_EVERY);
        }
    }

    fn check(&self, what: &str) -> Result<()> {
        ensure!(!self.shutdown.is_requested(), "{what}: stopped by a signal");
        ensure!(Instant::now() < self.deadline, "{what}: not within --seconds");
        Ok(())
    }

    /// Shows how far a part has come, on a terminal only.
    fn progress(&self, text: &str) {
        if self.is_terminal {
            // It is lost where nothing reads it.
            let _ = write!(io::stdout(), "\r\x1b[K{text}").and_then(|()| io::stdout().flush());
        }
    }

    fn say(&self, text: &str) {
        let clear = if self.is_terminal { "\r\x1b[K" } else { "" };
        stdout::write(&format!("{clear}{text}\n"));
    }

    /// Two clients allocate and exchange speech over their relayed addresses.
    fn relay(&self, engines: &Demonstrated) -> Result<()> {
        let (server, login) = engines.turn();
        let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let allocate = || Allocation::new(server, from, &login).context("turn");
        let (mut ann, mut bob) = (allocate()?, allocate()?);
        ann.permit(bob.relayed().ip())?;
        bob.permit(ann.relayed().ip())?;
        self.say(&format!("turn    ann {} and bob {} talk over {server}", ann.relayed(), bob.relayed()));
        let mut times: Vec<Duration> = Vec::with_capacity(PAYLOADS);
        for number in 1..=PAYLOADS {
            self.check("turn")?;
            self.progress(&format!("turn    {number} of {PAYLOADS} payloads"));
            let sent = Instant::now();
            ann.send(bob.relayed(), &PAYLOAD)?;
            let heard = bob.receive(Duration::from_secs(1))?;
            bob.send(ann.relayed(), &heard.unwrap_or_default())?;
            let back = ann.receive(Duration::from_secs(1))?;
            times.extend((back.as_deref() == Some(&PAYLOAD)).then(|| sent.elapsed()));
            thread::park_timeout(PAYLOAD_EVERY);
        }
        ensure!(times.len() == PAYLOADS, "turn: {} of {PAYLOADS} payloads came back", times.len());
        times.sort_unstable();
        let us = |of: usize| times[times.len() * of / 100].as_secs_f64() * 1e6;
        self.say(&format!(
            "        {PAYLOADS} of {PAYLOADS} payloads came back; there and back, four passes through the relay: \
             p50 {:.0} us, p99 {:.0} us",
            us(50),
            us(99)
        ));
        let denied =
            ann.permit(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))).err().context("a private peer was permitted")?;
        self.say(&format!("        ann asks for the private peer 10.0.0.1: {denied}\n"));
        Ok(())
    }

    /// Each fault makes a book stale, and a snapshot repairs it.
    fn catch_faults(&self, engines: &Demonstrated) -> Result<()> {
        let find = || engines.market().books.into_iter().find(|book| book.proof == PROOF);
        let chosen = self.wait("market: no proven book", find)?;
        let (venue, symbol) = (chosen.venue, &chosen.symbol);
        let is_proven = || {
            let of = |book: &Book| book.instrument == chosen.instrument && book.proof == PROOF;
            engines.market().books.iter().any(of).then_some(())
        };
        let resyncs = || -> u64 {
            engines.market().feeds.iter().filter(|feed| feed.venue == venue).map(|feed| feed.resyncs).sum()
        };
        for (fault, name) in FAULTS {
            self.wait(name, is_proven)?;
            let (before, injected) = (resyncs(), Instant::now());
            engines.inject(venue, &chosen.venue_symbol, fault)?;
            self.progress(&format!("market  {name} at {venue} {symbol} .."));
            self.wait(name, || (resyncs() > before).then_some(()))?;
            self.wait(name, is_proven)?;
            let ms = injected.elapsed().as_secs_f64() * 1e3;
            self.say(&format!(
                "market  {venue} {symbol}, {name}: wrong checksum; proven again by a snapshot {ms:.0} ms after the fault"
            ));
        }
        let rows = engines.market().ingest;
        for row in rows.iter().filter(|row| row.quantiles.is_some()).take(2) {
            self.say(&format!("        {}: {}", row.name, quantiles(row.quantiles.as_ref())));
        }
        self.say("");
        Ok(())
    }

    /// The strategy of the demonstration makes typical mistakes.
    fn refuse_orders(&self, engines: &Demonstrated) -> Result<()> {
        let mut shown = Vec::new();
        self.wait("risk: no refused order", || {
            let status = engines.risk();
            self.progress(&format!("risk    {} intents judged", status.ledger.input));
            for row in status.verdicts.iter().rev().filter(|row| !row.accept) {
                if shown.len() < ORDERS && !shown.contains(&row.seq) {
                    shown.push(row.seq);
                    self.say(&format!(
                        "risk    {} {} {} at {} on {}: refused, {}",
                        row.side,
                        row.qty,
                        row.symbol,
                        row.px,
                        row.venue,
                        row.reasons.join(" and ")
                    ));
                }
            }
            (shown.len() == ORDERS).then_some(())
        })?;
        let status = engines.risk();
        self.say(&format!("        from the ring to the verdict: {}\n", quantiles(status.journey.as_ref())));
        Ok(())
    }
}

fn quantiles(of: Option<&Quantiles>) -> String {
    let Some(of) = of else { return "no sample yet".to_owned() };
    let p99 = of.p99_ns.map(|ns| format!(", p99 {:.2} us", ns as f64 / 1e3)).unwrap_or_default();
    format!("p50 {:.2} us{p99} ({} samples)", of.p50_ns as f64 / 1e3, of.n)
}
