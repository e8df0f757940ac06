//! The snapshots that are being read, so that nothing is merged away that they show.

use lsm_tree::SeqNo;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// What may be seen, and what is being looked at.
#[derive(Default)]
pub struct Views(Mutex<State>);

#[derive(Default)]
struct State {
    /// All that is written with a sequence number below this is whole.
    visible: SeqNo,
    /// How many look at what.
    open: BTreeMap<SeqNo, usize>,
}

impl Views {
    /// From now on all below `visible` shows.
    pub fn publish(&self, visible: SeqNo) {
        let mut state = self.lock();
        state.visible = state.visible.max(visible);
    }

    /// Opens a snapshot of all that shows; it is to be closed.
    pub fn open(&self) -> SeqNo {
        let mut state = self.lock();
        let visible = state.visible;
        *state.open.entry(visible).or_default() += 1;
        visible
    }

    /// Closes a snapshot.
    pub fn close(&self, snapshot: SeqNo) {
        let mut state = self.lock();
        let left = state.open.get_mut(&snapshot).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            state.open.remove(&snapshot);
        }
    }

    /// The oldest snapshot that is open or may be opened: what is superseded below it is seen by nobody, now or later.
    pub fn oldest(&self) -> SeqNo {
        let state = self.lock();
        state.open.first_key_value().map_or(state.visible, |(snapshot, _)| *snapshot)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread panics while it holds the lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshot_is_the_oldest_that_is_open_or_else_the_next() {
        let views = Views::default();
        assert_eq!((views.open(), views.oldest()), (0, 0));
        views.close(0);
        views.publish(10);
        let (first, second) = (views.open(), views.open());
        views.publish(20);
        views.publish(15);
        let third = views.open();
        assert_eq!((first, second, third, views.oldest()), (10, 10, 20, 10));
        views.close(first);
        assert_eq!(views.oldest(), 10, "the second still looks");
        views.close(second);
        assert_eq!(views.oldest(), 20);
        views.close(third);
        assert_eq!(views.oldest(), 20);
    }
}
