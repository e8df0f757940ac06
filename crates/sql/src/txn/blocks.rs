//! The numbers that a site has taken from sequences and not given out yet.

use super::{Active, Home, TransactionHandle};
use crate::catalog::Run;
use crate::context::environment::Environment;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{DatabaseId, SequenceDescriptor, TableId};
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;
use tokio::sync::Mutex;

/// The numbers of the first block of a site.
const BLOCK_MIN: u64 = 32;
/// The most numbers of a block.
const BLOCK_MAX: u64 = 65_536;
/// The sequences that a site has blocks of; one more, and those that nobody waits for are forgotten.
const SEQUENCES_MAX: usize = 10_000;
/// Half of the longest pause before the second attempt, in milliseconds; it doubles with each further one.
const PAUSE_MILLIS: u64 = 2;
/// The longest pause.
const PAUSE_MILLIS_MAX: u64 = 200;
/// How often a block is asked for before the conflict is reported.
const ATTEMPTS_MAX: u32 = 4;

/// The blocks of a site.
#[derive(Debug, Default)]
pub struct Blocks(StdMutex<BySequence>);

/// The block of each sequence, locked while another one is taken.
type BySequence = HashMap<(DatabaseId, TableId), Arc<Mutex<Block>>>;

/// What the site has of a sequence.
#[derive(Debug, Default)]
struct Block {
    /// As of which generation of the sequence.
    generation: u32,
    run: Option<Run>,
    /// The numbers asked for so far.
    taken: u64,
}

impl Blocks {
    /// The next number of a sequence, for a transaction. Errors: 2200H; 40001 if the sequence is another one by now.
    pub async fn next(&self, environment: &dyn Environment, active: &mut Active, sequence: &Arc<SequenceDescriptor>) -> SqlResult<i64> {
        let Active { txn, catalog, home, .. } = active;
        if catalog.counts_itself(sequence) {
            let run = catalog.take_numbers(txn.as_mut(), sequence, 1).await?;
            return run.ok_or_else(|| another(sequence))?.next().ok_or_else(none_left);
        }
        // Whoever comes while a block is on its way waits for that.
        let block = self.block(sequence);
        let mut block = block.lock().await;
        if block.generation < sequence.generation {
            *block = Block { generation: sequence.generation, ..Block::default() };
        }
        if block.generation > sequence.generation {
            return Err(another(sequence));
        }
        if let Some(number) = block.run.as_mut().and_then(Iterator::next) {
            return Ok(number);
        }
        let wanted = sequence.cache.map_or_else(|| block.taken.clamp(BLOCK_MIN, BLOCK_MAX), u64::from);
        let mut run = taken(environment, home, sequence, wanted).await?;
        let number = run.next().ok_or_else(none_left)?;
        block.taken = block.taken.saturating_add(wanted);
        block.run = Some(run);
        Ok(number)
    }

    fn block(&self, sequence: &SequenceDescriptor) -> Arc<Mutex<Block>> {
        let mut blocks = self.0.lock().expect("nothing panics while it holds the lock");
        let id = (sequence.database, sequence.id);
        if blocks.len() >= SEQUENCES_MAX && !blocks.contains_key(&id) {
            blocks.retain(|_, block| Arc::strong_count(block) > 1);
        }
        blocks.entry(id).or_default().clone()
    }
}

/// Takes numbers in a transaction of its own.
async fn taken(environment: &dyn Environment, home: &Home, sequence: &SequenceDescriptor, wanted: u64) -> SqlResult<Run> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let handle = TransactionHandle::begin(home, ReadMode::Locking).await?;
        let taken = async {
            let mut active = handle.lock().await?;
            let Active { txn, catalog, .. } = &mut *active;
            catalog.take_numbers(txn.as_mut(), sequence, wanted).await
        };
        let result = match taken.await {
            Ok(Some(run)) => handle.commit(CommitOptions::default()).await.map(|()| run),
            Ok(None) => {
                handle.rollback(true).await;
                return Err(another(sequence));
            }
            Err(error) => {
                handle.rollback(error.is_retryable()).await;
                Err(error)
            }
        };
        match result {
            // Numbers of a commit whose outcome is not known are a gap.
            Err(error) if attempt < ATTEMPTS_MAX && (error.is_retryable() || error.state() == SqlState::StatementCompletionUnknown) => {
                // By chance, so that two sites in each other's way part.
                let longest = (PAUSE_MILLIS << attempt.min(16)).min(PAUSE_MILLIS_MAX) * 1_000;
                environment.sleep(Duration::from_micros(environment.draw(longest + 1))).await;
            }
            result => return result,
        }
    }
}

/// 40001.
fn another(sequence: &SequenceDescriptor) -> SqlError {
    TxnError::Conflict(format!("sequence {} has been set, altered or dropped meanwhile", sequence.name).into()).into()
}

fn none_left() -> SqlError {
    SqlError::internal("a block of numbers is empty")
}
