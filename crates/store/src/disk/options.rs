//! The bounds of an engine's memory and files.

/// The bounds of an engine's memory and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// Cached blocks of table files, in bytes.
    pub cache_bytes: u64,
    /// Writes held in memory, and in a segment of the journal, before they go to a table file, in bytes. There are up to
    /// [`SEALED_MAX`](super::SEALED_MAX) more of both while they are on their way, and a spare segment.
    pub write_buffer_bytes: u64,
    /// Table files kept open. At least 10.
    pub open_files: usize,
    /// Newly written table files that lie about before they are merged with the older ones: more of them spare writes and cost reads.
    pub unmerged_files: u8,
}

impl DiskOptions {
    /// Small: five sites share one machine.
    pub const DEFAULT: DiskOptions =
        DiskOptions { cache_bytes: 32 << 20, write_buffer_bytes: 16 << 20, open_files: 128, unmerged_files: 4 };
}

impl Default for DiskOptions {
    fn default() -> DiskOptions {
        DiskOptions::DEFAULT
    }
}
