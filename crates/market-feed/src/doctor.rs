//! Examination of a venue connection, step by step: name, TCP, TLS, instruments, subscription, books, clock and login.

mod certificate;
mod conversation;
mod examination;
mod keys;
mod observations;
pub mod printed;
mod reach;
mod report;
mod skew;
mod step;
mod topics;
mod visit;

pub use examination::{ExamineOptions, examine};
pub use report::{Finding, Observer, Outcome, StepResult, Summary};
pub use step::Step;
