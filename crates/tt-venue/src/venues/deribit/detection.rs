//! Detection of recordings of Deribit.

use crate::detection::Detection;

pub(super) const DETECTION: Detection =
    Detection { addresses: &["deribit.com"], unsupported: &[], sends: |start| start.has("\"jsonrpc\"") };
