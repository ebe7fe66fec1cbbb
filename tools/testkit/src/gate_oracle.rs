//! A second opinion on the risk gate: plain code on 128-bit integers that keeps the whole history of every order and sums
//! over it for each answer. It shares no code with `tt-risk`, only the plain values of `tt-model`.

mod history;
mod life;
mod nodes;
mod operators;
mod opinion;
mod settings;
mod tree;

pub use history::{Known, Oracle};
pub use opinion::Opinion;
pub use settings::{
    ContractSettings, InstrumentSettings, NodeSettings, Quote, RateSettings, RowMax, RowSettings, Settings,
    StrategySettings,
};
