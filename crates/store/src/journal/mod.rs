//! The journal: what was written and is not in table files yet, in segments that are filled one after the other.
//!
//! ```text
//!   journal/7.jnl    begin · batch · batch · mark · batch · … · end      sealed: its rows are being written to a table file
//!   journal/8.jnl    begin · mark · batch · … ····zeroes, or what a recycled file held before
//!   journal/spare    a segment whose rows are in table files: the next one will take its place on the disk
//! ```
//!
//! **A sync costs one write of the device.** Blocks of a segment are on the disk before batches come: a new file is filled with zeroes
//! ahead of what is written, and a segment that is done with is used again. So a sync changes no size and allocates nothing, and the file
//! system has nothing of its own to write with it. Whole blocks are written, the last one again and again until it is full; so nothing has
//! to be read first.
//!
//! **Damage.** After a crash the newest segment ends with what a power loss left of writes that were not synced: any of its blocks. That is
//! dropped. Damage to what was synced must not be: the first batch after each sync is a *mark*, so what cannot be read with a whole mark, or
//! the segment's end, behind it is damage. So is a segment before the newest without its end, a gap in the numbers of segments or of
//! batches, and a journal that begins behind what table files hold. The checksums of a segment are seeded with a secret of its own: what a
//! recycled file held before is nothing in it, nor is anything that a client may store. Segments are read from the device, for after a
//! failed sync the system may remember what the disk does not have.
//!
//! Not noticed: damage to what was synced last before a crash, as long as nothing was written after it.
//!
//! Invariants: batches are numbered without gaps. A segment is ended when all of it and the first record of the next one are on disk, and the
//! next one is used when the end is. Nothing is written to one after a write or a sync of it failed (its owner sees to that).

mod record;
mod recovery;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

pub use recovery::{Recovered, check, recover};
pub use writer::Journal;
