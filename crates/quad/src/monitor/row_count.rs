//! How many rows a site has.

use super::Monitor;
use crate::config::{COUNTED_PAGE, PAGE_BYTES_MAX};
use crate::context::{Context, Job};
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::{Key, KeyRange};

/// The rows here, counted a page at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct RowCount {
    /// By the last count that came to its end.
    pub(super) known: u64,
    /// By the running one, up to this row.
    pub(super) counted: u64,
    pub(super) last: Option<Key>,
    /// A page of it is being read.
    pub(super) is_loading: bool,
}

impl Monitor {
    /// Counts the rows here, a page each tick, or fewer where the disk is slower.
    pub(super) fn count_on(&mut self, cx: &mut Context<'_>) {
        if std::mem::replace(&mut self.rows.is_loading, true) {
            return;
        }
        let everything = KeyRange::prefix(&[]);
        let range = match &self.rows.last {
            Some(last) => KeyRange::new(last.successor(), everything.end),
            None => everything,
        };
        cx.load(Job::Counted, Load::ScanStamps { range, limit: COUNTED_PAGE, bytes: PAGE_BYTES_MAX });
    }

    pub(crate) fn on_counted(&mut self, loaded: Loaded) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        let RowCount { known, counted, .. } = self.rows;
        let counted = counted + rows.len() as u64;
        self.rows = if more {
            RowCount { known, counted, last: rows.last().map(|row| row.key.clone()), is_loading: false }
        } else {
            RowCount { known: counted, ..RowCount::default() }
        };
    }
}
