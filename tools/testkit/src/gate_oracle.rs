//! A second opinion on the risk gate: plain code on 128-bit integers that keeps the whole history of every order and sums
//! over it for each answer. It shares no code with `tt-risk`, only the plain values of `tt-model`.

mod history;
mod life;
mod opinion;
mod settings;

pub use history::{Known, Oracle};
pub use opinion::Opinion;
pub use settings::{InstrumentSettings, Quote, RateSettings, RowSettings, Settings};
