//! Every input of a gate, and the one function that performs it: live, after a restart, and in a replay.

use tt_meter::{Off, Probe};
use tt_model::{InstrumentId, OrderIntent, OrderSide, Qty, Report, Verdict};
use tt_os::clock::WallTime;
use tt_risk::money::Conversion;
use tt_risk::{Gate, GateError, InstrumentState, KillSwitch, Limits, Mark, Mode, Outcome};

use gate_limits::LimitsFile;

/// An input of a gate.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A gate with these limits begins: the text of a limits file.
    Begin {
        /// TOML.
        limits: String,
    },
    /// The gate was restored after a restart.
    Restart,
    /// An order intent.
    Intent {
        /// Its producer.
        producer: u16,
        /// The generation of the switches, as read.
        generation: u32,
        /// The intent.
        intent: OrderIntent,
    },
    /// A report of a venue.
    Report(Report),
    /// A reference price, as read.
    Mark(InstrumentId, Mark),
    /// A switch has another mode.
    Mode(KillSwitch, Mode),
    /// An instrument has another trading state.
    State(InstrumentId, InstrumentState),
    /// A producer continues behind this number.
    Resume(u16, u64),
    /// An operator declares an account true.
    Adopt(u16),
    /// A venue states the orders and positions of an account.
    Reconcile(Statement),
    /// Time passes.
    Time,
    /// The journal is lost, or is written again.
    JournalLost(bool),
    /// An account has other limits in an instrument.
    Limits(u16, InstrumentId, Limits),
    /// All limits are replaced, or temporary ones revert. The wall time decides which temporary limits are in force;
    /// `None`: the time of the input.
    Load(Box<LimitsFile>, Option<u64>),
    /// A currency has another rate.
    Conversion(u16, Conversion),
    /// The venue's total of an account in a currency, in its smallest steps.
    Balance(u16, u16, i64),
    /// The venue's equity of an account, in steps of the currency of limits.
    Equity(u16, i64),
    /// A day begins: daily losses count from here.
    Day,
    /// A strategy of an account continues that its executions have stopped.
    Enable(u16, u16),
    /// An operator, or the dead man's switch, cancels every open order of a scope.
    CancelScope(KillSwitch),
    /// The machine has slept, during which the gate's clock stood still.
    Suspended,
    /// Refusals of a producer that were not recorded: its bucket is full again at this time.
    Refusals(u16, u64),
    /// The system's clock, for people and for times that a limits file names. It judges nothing.
    Wall(WallTime),
}

/// What an input leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The verdict on an intent.
    Verdict(Verdict),
    /// What became of a report.
    Outcome(Outcome),
    /// What differs from the venue's statement.
    Differences(Vec<Difference>),
    /// The input was applied, or rejected.
    Applied(Result<(), GateError>),
}

/// What a venue says of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// The account.
    pub account: u16,
    /// Every open order.
    pub orders: Vec<StatedOrder>,
    /// Every position; an instrument that is not listed has none.
    pub positions: Vec<(InstrumentId, Qty)>,
}

/// An open order in a [`Statement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedOrder {
    /// The client id.
    pub client_id: u64,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The side.
    pub side: OrderSide,
    /// The order's quantity.
    pub qty: Qty,
    /// The part that was executed.
    pub executed: Qty,
}

/// A difference between a gate's records and a [`Statement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The venue does not have this order, which is open here.
    Missing(u64),
    /// The venue has this order, which is not open here.
    Unknown(u64),
    /// The order has other terms.
    Terms(u64),
    /// The position differs.
    Position {
        /// The instrument.
        instrument: InstrumentId,
        /// Here.
        ours: Qty,
        /// At the venue.
        venue: Qty,
    },
    /// Executions of ended orders are awaited.
    Awaited(InstrumentId),
}

/// Performs `input` on `gate` at `now_ns`. [`Input::Begin`] changes nothing: the caller makes the gate.
pub fn perform(gate: &mut Gate, now_ns: u64, input: &Input) -> Answer {
    let applied = match input {
        Input::Intent { producer, generation, intent } => {
            return Answer::Verdict(judge(gate, now_ns, (*producer, *generation), intent, &mut Off));
        }
        Input::Report(report) => return Answer::Outcome(gate.apply(now_ns, report)),
        Input::Reconcile(statement) => return Answer::Differences(reconcile(gate, now_ns, statement)),
        Input::Begin { .. } => Ok(()),
        Input::Restart => {
            gate.doubt_all();
            Ok(())
        }
        Input::Mark(instrument, mark) => gate.set_reference(now_ns, *instrument, mark),
        Input::Mode(switch, mode) => gate.controls().set_mode(*switch, *mode).map(drop).ok_or(GateError::Unknown),
        Input::State(instrument, state) => gate.set_state(*instrument, *state),
        Input::Resume(producer, last_seq) => gate.resume(*producer, *last_seq),
        Input::Adopt(account) => gate.adopt(*account, now_ns),
        Input::Time => {
            gate.pass_time(now_ns);
            Ok(())
        }
        Input::JournalLost(is_lost) => {
            gate.set_journal_lost(*is_lost);
            Ok(())
        }
        Input::Limits(account, instrument, limits) => gate.set_limits(*account, *instrument, limits).map(drop),
        Input::Load(limits, wall_ns) => {
            // Values are old from now on, not from the event before.
            gate.pass_time(now_ns);
            limits.apply(gate, wall_ns.unwrap_or(now_ns)).map(drop)
        }
        Input::Conversion(currency, conversion) => {
            gate.pass_time(now_ns);
            gate.set_conversion(*currency, conversion)
        }
        Input::Balance(account, currency, total) => gate.set_balance(*account, *currency, *total),
        Input::Equity(account, equity) => gate.set_equity(*account, *equity, now_ns),
        Input::Day => {
            gate.start_day(now_ns);
            Ok(())
        }
        Input::Enable(account, strategy) => gate.enable(*account, *strategy),
        Input::CancelScope(scope) => {
            gate.cancel_scope(now_ns, *scope, |_| {});
            Ok(())
        }
        Input::Suspended => {
            gate.suspect_clock(now_ns);
            Ok(())
        }
        Input::Refusals(producer, due_ns) => gate.set_refusals_due(*producer, *due_ns),
        Input::Wall(_) => Ok(()),
    };
    Answer::Applied(applied)
}

/// Evaluates an intent of a producer under the switches of a generation.
pub(crate) fn judge(
    gate: &mut Gate,
    now_ns: u64,
    (producer, generation): (u16, u32),
    intent: &OrderIntent,
    probe: &mut impl Probe,
) -> Verdict {
    // The switches that the gate reads follow those of other threads: theirs is the generation that counts.
    Verdict { generation, ..gate.evaluate(now_ns, producer, intent, probe) }
}

/// Compares the records of an account with what the venue states. If nothing differs, the account's doubt ends.
fn reconcile(gate: &mut Gate, now_ns: u64, statement: &Statement) -> Vec<Difference> {
    let Statement { account, orders, positions } = statement;
    let mut found = Vec::new();
    for stated in orders {
        match gate.open_order(*account, stated.client_id) {
            Some((instrument, ours)) => {
                let ours = (instrument, ours.side, ours.qty, ours.executed);
                let same = ours == (stated.instrument, stated.side, stated.qty, stated.executed);
                found.extend((!same).then_some(Difference::Terms(stated.client_id)));
            }
            None => found.push(Difference::Unknown(stated.client_id)),
        }
    }
    for instrument in (0..).map(InstrumentId) {
        let Some(held) = gate.exposure(*account, instrument) else { break };
        let (mut open, mut leaves) = (Vec::new(), [0; 2]);
        gate.open_orders(*account, instrument, |client_id| open.push(client_id));
        for client_id in open {
            if !orders.iter().any(|stated| stated.client_id == client_id) {
                found.push(Difference::Missing(client_id));
            }
            if let Some((_, order)) = gate.open_order(*account, client_id) {
                leaves[order.side as usize] += order.qty.0 - order.executed.0;
            }
        }
        let venue = positions.iter().find(|(of, _)| *of == instrument).map_or(Qty(0), |(_, qty)| *qty);
        if held.position != venue {
            found.push(Difference::Position { instrument, ours: held.position, venue });
        }
        if [held.open_buy_qty.0, held.open_sell_qty.0] != leaves {
            found.push(Difference::Awaited(instrument));
        }
    }
    if found.is_empty() && gate.adopt(*account, now_ns).is_err() {
        // An account beyond the table has nothing to compare with.
        found.push(Difference::Unknown(0));
    }
    found
}
