//! Where the writer works: on a thread of its own, or on the actor's.
//!
//! Of its own, the actor goes on while the disk syncs. That is right where a step is worth more than handing its writes
//! over, and where much of what a site does needs no disk.
//!
//! On the actor's, nothing happens while the disk syncs, and all that arrives meanwhile is in the next group. That is
//! right where steps are short and each ends on disk: there is nothing else to do, groups are as large as can be, and no
//! thread waits for another to be woken, which on a busy machine takes longer than the sync.

use super::Hosted;
use super::attend::{Attend, Needed};
use super::queue::{End, Way, queue};
use super::writer::{GROUP_MAX, Queued, Writer};
use crate::failure::Failure;
use rhumb_store::{Engine, StoreError};
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// While so much waits for the writer's thread, the actor makes no step.
const QUEUE_MAX: usize = 65_536;

/// The way to the disk.
pub enum Disk<A: Hosted, E> {
    /// The writer has a thread.
    Beside(Way<Queued<A>>),
    /// The writer works on the actor's thread.
    Here {
        /// Writes.
        writer: Writer<A, E>,
        /// What it will.
        group: Vec<Queued<A>>,
        /// So much was in the group before.
        last: usize,
        /// Where a disk that fails is reported.
        failure: Failure,
    },
}

/// The disk has failed; the reason was reported.
pub struct Failed;

impl<A: Hosted, E: Engine> Disk<A, E> {
    /// A disk written on the actor's thread.
    pub fn here(writer: Writer<A, E>, failure: Failure) -> Disk<A, E> {
        Disk::Here { writer, group: Vec::new(), last: 0, failure }
    }

    /// A disk written on a thread of its own, which ends with the way to it.
    pub fn beside(
        thread: Builder,
        writer: Writer<A, E>,
        cell: Arc<dyn Attend>,
        failure: Failure,
    ) -> io::Result<(Disk<A, E>, JoinHandle<()>)> {
        let (way, end) = queue(QUEUE_MAX);
        let thread = thread.spawn(move || {
            let _guard = failure.guard("the thread that writes to disk");
            let needed = Needed(Arc::clone(&cell));
            let served = serve(writer, &*cell, &end);
            // Who hears of a failure finds the actor ended.
            drop(needed);
            if let Err(error) = served {
                failure.report(error.to_string());
            }
        })?;
        Ok((Disk::Beside(way), thread))
    }

    /// Adds to what is to be written.
    pub fn queue(&mut self, queued: Queued<A>) -> Result<(), Failed> {
        match self {
            // The thread ends before this does only after it has reported why.
            Disk::Beside(way) => way.add(queued).then_some(()).ok_or(Failed),
            Disk::Here { group, .. } => {
                group.push(queued);
                if group.len() < GROUP_MAX { Ok(()) } else { self.flush() }
            }
        }
    }

    /// True if the actor may make a step.
    pub fn has_room(&self) -> bool {
        match self {
            Disk::Beside(way) => way.has_room(),
            Disk::Here { .. } => true,
        }
    }

    /// True if more may soon join what is queued: clients that were answered together ask again together.
    pub fn gathers(&self) -> bool {
        matches!(self, Disk::Here { group, last, .. } if (1..*last).contains(&group.len()))
    }

    /// The actor has nothing more to do for now: what waits for nobody else is written.
    pub fn flush(&mut self) -> Result<(), Failed> {
        let Disk::Here { writer, group, last, failure } = self else { return Ok(()) };
        if group.is_empty() {
            return Ok(());
        }
        *last = group.len();
        // The thread may sleep for long after this, so what nobody waits for is made durable as well.
        writer.commit(group.drain(..)).and_then(|()| writer.sync()).map_err(|error| {
            failure.report(error.to_string());
            Failed
        })
    }
}

/// Serves the queue until the way to it is gone and all of it is durable.
fn serve<A: Hosted, E: Engine>(mut writer: Writer<A, E>, cell: &dyn Attend, end: &End<Queued<A>>) -> Result<(), StoreError> {
    loop {
        let Some(group) = end.take(GROUP_MAX, writer.due()) else { return writer.sync() };
        writer.commit(group)?;
        // Also where more is to be written: to wake another thread for these steps would take as long as they do.
        cell.attend();
    }
}
