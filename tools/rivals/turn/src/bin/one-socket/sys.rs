//! System calls without a safe wrapper.

pub(crate) mod batch;
pub(crate) mod bpf;
