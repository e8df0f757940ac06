//! The store: carries out the batches, loads and collections of an actor on an engine.
//!
//! Rows have versions, newest first; records have none. Writing never reads: a version is put in its place, and a deletion is
//! noted in an index, from which [`Store::collect`] works. So the same version again changes nothing, and versions may come in
//! any order.
//!
//! Invariants: a load sees whole batches only, all that were applied before it; each deletion has an entry in the index until it
//! is collected.

use crate::engine::{Engine, View, Write};
use crate::error::StoreError;
use crate::group::Group;
use crate::layout;
use crate::newest::Newest;
use crate::scan::{self, Bounds, Page, within};
use crate::stamps;
use crate::swept::Swept;
use bytes::Bytes;
use rhumb_core::actor::Space;
use rhumb_core::{Batch, Key, Load, Loaded, Row, Timestamp};
use std::sync::{Mutex, MutexGuard};

/// Multi-version rows and protocol records over an engine. Safe to share between threads.
pub struct Store<E> {
    engine: E,
    /// Held by whoever writes: a collection must not drop the entry of a deletion put meanwhile.
    swept: Mutex<Swept>,
}

impl<E: Engine> Store<E> {
    /// The store in `engine`, made if there is none yet. Refuses a format that it does not know.
    pub fn open(engine: E) -> Result<Store<E>, StoreError> {
        let known = layout::FORMAT_VERSION.to_string();
        let found = engine.view().get(layout::FORMAT_KEY)?;
        match found {
            Some(found) if found == known.as_bytes() => {}
            Some(found) => {
                let found = String::from_utf8_lossy(&found).into_owned();
                return Err(StoreError::UnknownFormat { place: "the store".into(), found, known });
            }
            None => {
                engine.write(vec![Write::Put { key: Bytes::from_static(layout::FORMAT_KEY), value: known.into() }])?;
                engine.sync()?;
            }
        }
        Ok(Store { engine, swept: Mutex::default() })
    }

    /// The engine, for instance to let it crash. The store ends here: what it remembers may not outlive a crash.
    pub fn into_engine(self) -> E {
        self.engine
    }

    /// The engine, for what only it can tell.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Swept> {
        self.swept.lock().expect("no thread panics while it holds the lock")
    }

    /// Carries out `batch` as one. Later loads see it at once; it is durable after [`sync`](Store::sync).
    pub fn apply(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut group = Group::default();
        group.add(batch)?;
        self.apply_group(group)
    }

    /// Carries out the batches of `group` as one: cheaper than one by one, above all if they write the same keys.
    pub fn apply_group(&self, group: Group) -> Result<(), StoreError> {
        let (versions, writes) = group.into_parts();
        if writes.is_empty() {
            return Ok(());
        }
        let mut swept = self.lock();
        versions.into_iter().for_each(|at| swept.written(at));
        self.engine.write(writes)
    }

    /// Returns once everything applied before the call is durable. One sync serves any number of applies.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.engine.sync()
    }

    /// Answers `load` from `newest` where that knows, and lets it know what it did not. No write of the keys may be on its way to the store.
    pub fn load_through(&self, newest: &mut Newest, load: &Load) -> Result<Loaded, StoreError> {
        if let Some(known) = newest.answer(load) {
            return Ok(known);
        }
        let view = self.engine.view();
        let mut row = |key: &Key, at| {
            if let Some(row) = newest.row(key, at) {
                return Ok(row);
            }
            if !newest.holds(key) {
                // Nearly always that is the one asked for, and it is the one to be held.
                let row = get(&*view, key, Timestamp::MAX)?;
                newest.fill(&row);
                if row.version <= at {
                    return Ok(row);
                }
            }
            get(&*view, key, at)
        };
        match load {
            Load::Get { keys, at, bytes } => within(keys.iter().map(|key| row(key, *at)), *bytes),
            Load::Stamps { keys } => {
                let stamp = |key| row(key, Timestamp::MAX).map(|row| Row { value: None, ..row });
                Ok(Loaded::Rows { rows: keys.iter().map(stamp).collect::<Result<_, StoreError>>()?, more: false })
            }
            Load::ScanStamps { .. } | Load::Scan { .. } | Load::Versions { .. } | Load::Records { .. } => self.load(load),
        }
    }

    /// Answers `load` from one snapshot of the store.
    pub fn load(&self, load: &Load) -> Result<Loaded, StoreError> {
        let view = self.engine.view();
        match load {
            Load::Get { keys, at, bytes } => within(keys.iter().map(|key| get(&*view, key, *at)), *bytes),
            Load::Stamps { keys } => {
                let rows = keys.iter().map(|key| stamps::of(&*view, key)).collect::<Result<Vec<Row>, StoreError>>()?;
                Ok(Loaded::Rows { rows, more: false })
            }
            Load::ScanStamps { range, limit, bytes } => {
                let found = stamps::scan(&*view, range, *limit, *bytes)?;
                Ok(Loaded::Rows { rows: found.rows, more: found.more })
            }
            Load::Scan { range, at, limit, bytes, reverse } => {
                let found = scan::scan(&*view, range, *at, Bounds { limit: *limit, bytes: *bytes }, *reverse)?;
                Ok(Loaded::Rows { rows: found.rows, more: found.more })
            }
            Load::Versions { versions, bytes } => {
                within(versions.iter().filter_map(|(key, at)| version(&*view, key, *at).transpose()), *bytes)
            }
            Load::Records { space, from, limit, bytes } => records(&*view, *space, from, Bounds { limit: *limit, bytes: *bytes }),
        }
    }
}

fn get(view: &dyn View, key: &Key, at: Timestamp) -> Result<Row, StoreError> {
    let found = scan::newest(view, &layout::key_prefix(key), at)?;
    Ok(match found {
        Some((version, value)) => Row { key: key.clone(), version, value },
        None => Row { key: key.clone(), version: Timestamp::ZERO, value: None },
    })
}

fn version(view: &dyn View, key: &Key, at: Timestamp) -> Result<Option<Row>, StoreError> {
    let Some(stored) = view.get(&layout::version_key(&layout::key_prefix(key), at))? else { return Ok(None) };
    Ok(Some(Row { key: key.clone(), version: at, value: layout::decode_value(&stored)? }))
}

fn records(view: &dyn View, space: Space, from: &[u8], bounds: Bounds) -> Result<Loaded, StoreError> {
    let mut page = Page::new(bounds);
    for entry in view.range(&layout::record_key(space, from), &layout::past_space(space), false) {
        let (key, bytes) = entry?;
        let key = layout::key_of_record(&key);
        let size = key.len() + bytes.len();
        if !page.push((key, bytes), size) {
            return Ok(Loaded::Records { records: page.into_found(), more: true });
        }
    }
    Ok(Loaded::Records { records: page.into_found(), more: false })
}
