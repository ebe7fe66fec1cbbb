//! The program as its users see it: command line, HTTP, page, report, gate and machine floor.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

mod busy_machine;
mod cli;
mod commands;
mod compatibility;
mod floor;
mod gate;
mod gate_control;
mod gate_documents;
mod gate_limits;
mod gate_page;
mod gate_rehearsal;
mod operations_kit;
mod page;
mod report_page;
mod risk;
mod serve;
mod served;
mod tutorials;
