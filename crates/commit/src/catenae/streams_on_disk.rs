//! With how many coordinators in a region a site's disk was written.
//!
//! That is for ever: a stream more or less would begin or end in an epoch that nobody has agreed on. So whoever starts a site looks at
//! its disk first, and refuses another number.

use super::records::{self, ENTRIES, PROGRESS, PROMISES};
use super::stream_id::StreamId;
use rhumb_core::actor::Space;
use rhumb_core::{Load, Loaded, RegionId, Topology};

/// With how many coordinators in a region a disk was written; `None` if it holds too little to tell. `load` reads from it.
///
/// # Errors
/// What `load` fails with.
pub fn coordinators<E>(topology: &Topology, mut load: impl FnMut(&Load) -> Result<Loaded, E>) -> Result<Option<u16>, E> {
    let mut records = |space: Space, from: Vec<u8>, limit| {
        let loaded = load(&Load::Records { space, from: from.into(), limit, bytes: usize::MAX })?;
        let Loaded::Records { records, .. } = loaded else { unreachable!("records were asked for") };
        Ok(records)
    };
    // How far a site has come it says of all streams.
    if let Some((_, bytes)) = records(PROGRESS, Vec::new(), 1)?.first() {
        let streams = records::decode_progress(bytes).expect("progress on disk is whole").entries.len();
        return Ok(Some((streams / topology.region_count()) as u16));
    }
    // Before that, a second stream shows in what it holds or has promised, and a single one does not show: the second may be yet to come.
    let second = StreamId::new(RegionId(0), 1).to_be_bytes().to_vec();
    let is_second = !records(ENTRIES, second.clone(), 1)?.is_empty() || !records(PROMISES, second, 1)?.is_empty();
    Ok(is_second.then_some(super::SITES_PER_REGION_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catenae::epoch::Epoch;
    use crate::catenae::message::{Ballot, Entry, Progress};
    use rhumb_core::Batch;
    use rhumb_store::{MemoryEngine, Store};

    fn coordinators_of(put: impl FnOnce(&mut Batch)) -> Option<u16> {
        let store = Store::open(MemoryEngine::new()).expect("a new store");
        let mut batch = Batch::new();
        put(&mut batch);
        store.apply(&batch).expect("the store takes it");
        let topology = Topology::new(["a", "b", "c"].map(String::from).to_vec(), 2);
        coordinators(&topology, |load| store.load(load)).expect("the store is sound")
    }

    #[test]
    fn a_disk_shows_with_how_many_coordinators_it_was_written() {
        let progress = |streams| Progress { settled: Epoch(7), entries: vec![(3, Epoch(7)); streams] };
        assert_eq!(coordinators_of(|batch| records::put_progress(batch, &progress(3))), Some(1));
        assert_eq!(coordinators_of(|batch| records::put_progress(batch, &progress(6))), Some(2));
        let entry = |stream: StreamId| {
            let entry = Entry { author: stream.head(), epoch: Epoch(7), batch: vec![], orders: vec![] };
            coordinators_of(|batch| records::put_entry(batch, stream, 1, &(Ballot::first(stream), entry)))
        };
        let promise = |stream| coordinators_of(|batch| records::put_promise(batch, stream, Ballot::first(stream)));
        let (first, second) = (StreamId::first(RegionId(2)), StreamId::new(RegionId(1), 1));
        assert_eq!((entry(first), promise(first), coordinators_of(|_| {})), (None, None, None));
        assert_eq!((entry(second), promise(second)), (Some(2), Some(2)));
    }
}
