//! The threads that read the store where that may take long: scans, records, many keys. With them goes the one that collects garbage (`collector.rs`).
//!
//! Short reads are served within the step that asks, without a hop. A load that goes this way may see batches applied after
//! it was asked for; whole ones only, since a load reads from one snapshot.

use super::Hosted;
use super::attend::{Attend, Needed};
use super::collector;
use super::mailbox::Mailbox;
use super::queue::{End, Way, queue};
use crate::failure::Failure;
use rhumb_core::actor::{Collect, Input, Load, Token};
use rhumb_store::{Engine, Store, StoreError};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// So many threads.
const LOADERS: usize = 2;
/// While so many loads wait for them, the actor makes no step.
const LOADS_MAX: usize = 16_384;

/// The way to the threads. They end when it is dropped.
pub struct Loaders {
    loads: Way<(Token, Load)>,
    collects: SyncSender<Collect>,
}

impl Loaders {
    /// Starts the threads. Answers go to `mailbox`, and `cell` is told.
    pub fn start<A: Hosted, E: Engine>(
        store: &Arc<Store<E>>,
        mailbox: &Arc<Mailbox<A>>,
        cell: &Arc<dyn Attend>,
        failure: &Failure,
    ) -> io::Result<(Loaders, Vec<JoinHandle<()>>)> {
        let (loads, end) = queue(LOADS_MAX);
        let end = Arc::new(end);
        let mut threads = Vec::new();
        for _ in 0..LOADERS {
            let (store, mailbox, cell, failure, end) =
                (Arc::clone(store), Arc::clone(mailbox), Arc::clone(cell), failure.clone(), Arc::clone(&end));
            let thread = std::thread::Builder::new().name("load".into());
            threads.push(thread.spawn(move || {
                let _guard = failure.guard("a thread that reads from disk");
                let needed = Needed(Arc::clone(&cell));
                if let Err(error) = load(&store, &mailbox, &*cell, &end) {
                    // Who hears of a failure finds the actor ended.
                    drop(needed);
                    failure.report(error.to_string());
                }
            })?);
        }
        // One collection runs and one waits: of two that wait the later one is as good, since horizons only rise.
        let (collects, queue) = sync_channel(1);
        threads.push(collector::start(Arc::clone(store), failure.clone(), queue)?);
        Ok((Loaders { loads, collects }, threads))
    }

    /// Has `load` answered. False if the threads have ended, which they do before this only after they have reported why.
    pub fn load(&self, token: Token, load: Load) -> bool {
        self.loads.add((token, load))
    }

    /// True if the actor may make a step.
    pub fn has_room(&self) -> bool {
        self.loads.has_room()
    }

    /// Has garbage collected, unless a collection waits already: the actor asks again.
    pub fn collect(&self, collect: Collect) {
        let _ = self.collects.try_send(collect);
    }
}

fn load<A: Hosted, E: Engine>(
    store: &Store<E>,
    mailbox: &Mailbox<A>,
    cell: &dyn Attend,
    loads: &End<(Token, Load)>,
) -> Result<(), StoreError> {
    while let Some((token, load)) = loads.take(1, None).and_then(|mut loads| loads.pop_front()) {
        mailbox.push_inner(Input::Loaded { token, loaded: store.load(&load)? });
        cell.attend();
    }
    Ok(())
}
