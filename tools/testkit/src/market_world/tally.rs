//! Totals of runs.

use crate::tally::tally;

tally! {
    /// Virtual seconds.
    virtual_s,
    /// Frames and snapshots that the engine was given.
    frames,
    /// Faults that were caused.
    faults,
    /// Looks at a book that stood as verified.
    verified,
    /// Looks at a book that did not.
    unverified,
    /// Gaps that the engine found.
    gaps,
    /// Books that it lost and requested again.
    resyncs,
    /// Connections opened.
    connections,
    /// Connections that took over from one that was still open.
    successions,
    /// Frames of closed connections.
    late,
    /// Connections, requests and snapshots that waited for the venue's limits.
    put_off,
    /// Snapshots that were needed while one was on its way.
    repeated,
    /// Requests that a ban rejected.
    banned,
    /// Messages of the streams that readers read.
    messages,
    /// Marks of lost messages.
    marks,
    /// Messages that found no room before a reader.
    unread,
    /// Events that found no room before the streams.
    unsent,
    /// Runs that were played once more from their inputs.
    replayed,
}
