//! Statements that travel: where the commit protocol carries out operations, those of one text, or a statement alone, become one
//! transaction that reads nothing beforehand.
//!
//! ```text
//!   BEGIN; UPDATE …; INSERT …; SELECT …; COMMIT      in one text, or without BEGIN and COMMIT
//!      └─▶ each as operations, those on one key together ─▶ commit ─▶ what each returned, statement by statement
//!      └─▶ one of them has no operations: they run one after the other, and the commit validates what they read
//! ```
//!
//! Nothing that others do makes such a transaction fail; it fails if it cannot be done at all: a key is taken, a sum is out of
//! range. Only the tables may turn out to be others than it was planned for, and then it runs again.

use super::autocommit::AUTOCOMMIT_ATTEMPTS_MAX;
use super::outcome::Outcome;
use super::prepared::Prepared;
use super::run::{check_parameters, outcome, writes};
use super::transaction::TransactionHandle;
use super::{Session, State};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parse::{AccessMode, StatementKind, Transaction};
use crate::plan::{Effect, Plan, Running, Steps};
use crate::types::Datum;
use rhumb_commit::catenae::execution::Output;
use rhumb_commit::catenae::operation::{OPERATIONS_MAX, Operation};
use rhumb_commit::transaction::{Operated, ReadMode};
use rhumb_core::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Statements with the values of their parameters.
type Bound<'a> = (&'a Prepared, &'a [Datum]);

/// What became of an attempt.
enum Attempt {
    /// What each statement did.
    Done(Vec<(Arc<Plan>, Effect)>),
    /// A statement failed, and nothing was done.
    Failed(SqlError),
    /// They are no such transaction.
    Unfit,
}

impl Session {
    /// Runs the statements of a text as one transaction of operations; `None` if they are none.
    pub async fn one_shot(&mut self, statements: &[Arc<Prepared>]) -> SqlResult<Option<Vec<Outcome>>> {
        if statements.len() < 2 || !self.may_operate() {
            return Ok(None);
        }
        let kinds: Vec<&StatementKind> = statements.iter().map(|prepared| &prepared.statement.kind).collect();
        let is_block = match kinds.as_slice() {
            [StatementKind::Transaction(Transaction::Begin(access)), .., StatementKind::Transaction(Transaction::Commit)] => {
                if *access == AccessMode::ReadOnly {
                    return Ok(None);
                }
                true
            }
            _ => false,
        };
        let body = if is_block { &statements[1..statements.len() - 1] } else { statements };
        if statements.iter().any(|prepared| prepared.statement.as_of.is_some())
            || !body.iter().any(|prepared| writes(&prepared.statement.kind))
        {
            return Ok(None);
        }
        self.interrupt.restart(self.facts.settings.statement_timeout());
        let bound: Vec<Bound<'_>> = body.iter().map(|prepared| (&**prepared, &[][..])).collect();
        let effects = match self.operate(&bound).await? {
            Attempt::Done(effects) => effects,
            Attempt::Unfit => return Ok(None),
            Attempt::Failed(error) => {
                if is_block {
                    // COMMIT was not reached.
                    self.state = State::Failed(self.facts.settings.clone());
                }
                return Err(error);
            }
        };
        let done = |tag: &str| Outcome::Done(tag.to_owned());
        let outcomes = body.iter().zip(effects).map(|(prepared, (plan, effect))| outcome(&prepared.statement.kind, &plan, effect));
        let begin = is_block.then(|| done("BEGIN"));
        let commit = is_block.then(|| done("COMMIT"));
        Ok(Some(begin.into_iter().chain(outcomes).chain(commit).collect()))
    }

    /// Runs a statement that stands alone as operations; `None` if it has none.
    pub(super) async fn one_shot_statement(&mut self, prepared: &Prepared, parameters: &[Datum]) -> SqlResult<Option<Outcome>> {
        let kind = &prepared.statement.kind;
        if !writes(kind) || !self.may_operate() {
            return Ok(None);
        }
        match self.operate(&[(prepared, parameters)]).await? {
            Attempt::Done(effects) => Ok(effects.into_iter().next().map(|(plan, effect)| outcome(kind, &plan, effect))),
            Attempt::Failed(error) => Err(error),
            Attempt::Unfit => Ok(None),
        }
    }

    /// True if statements may become operations now.
    fn may_operate(&self) -> bool {
        matches!(self.state, State::Idle) && self.home.gateway().takes_operations() && !self.begins_read_only()
    }

    async fn operate(&mut self, statements: &[Bound<'_>]) -> SqlResult<Attempt> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.operate_once(statements).await {
                Err(error) if error.is_retryable() && attempt < AUTOCOMMIT_ATTEMPTS_MAX => self.back_off(attempt).await?,
                result => return result,
            }
        }
    }

    async fn operate_once(&mut self, statements: &[Bound<'_>]) -> SqlResult<Attempt> {
        let handle = TransactionHandle::begin_repeatable(&self.home, ReadMode::Optimistic).await?;
        let planned = match self.interrupt.within(self.steps(&handle, statements)).await {
            Ok(Some(planned)) => planned,
            unfit => {
                handle.rollback(false).await;
                return Ok(match unfit {
                    // It would not be told again: nobody cancels twice, and by then the new plan is the current one.
                    Err(error) if matches!(error.state(), SqlState::QueryCanceled | SqlState::FeatureNotSupported) => {
                        Attempt::Failed(error)
                    }
                    // What else is wrong with a statement it is told where it runs by itself.
                    _ => Attempt::Unfit,
                });
            }
        };
        let Some(merged) = Merged::of(planned.iter().map(|(_, steps)| steps.operations())) else {
            handle.rollback(false).await;
            return Ok(Attempt::Unfit);
        };
        let outputs = match handle.operate(merged.operations).await? {
            Operated::Done(_, outputs) => outputs,
            Operated::Failed { place, why } => {
                let (statement, step) = merged.places[place];
                return Ok(Attempt::Failed(planned[statement].1.blame(step, &why)));
            }
        };
        // It is committed: too late to be late.
        self.interrupt.restart(None);
        let mut parts: Vec<Vec<(usize, Output)>> = planned.iter().map(|_| Vec::new()).collect();
        merged.places.into_iter().zip(outputs).for_each(|((statement, step), output)| parts[statement].push((step, output)));
        let mut effects = Vec::with_capacity(planned.len());
        for (((plan, steps), mut outputs), (_, parameters)) in planned.into_iter().zip(parts).zip(statements) {
            outputs.sort_by_key(|(step, _)| *step);
            let outputs = outputs.into_iter().map(|(_, output)| output).collect();
            let cx = Running { engine: &self.engine, handle: &handle, parameters };
            effects.push((plan.clone(), plan.operated(cx, steps, outputs)?));
        }
        Ok(Attempt::Done(effects))
    }

    /// The operations of each statement; `None` if one has none.
    async fn steps(&self, handle: &TransactionHandle, statements: &[Bound<'_>]) -> SqlResult<Option<Vec<(Arc<Plan>, Steps)>>> {
        let mut planned = Vec::with_capacity(statements.len());
        for (prepared, parameters) in statements {
            let is_query = matches!(
                prepared.statement.kind,
                StatementKind::Query { .. } | StatementKind::Insert(_) | StatementKind::Update(_) | StatementKind::Delete(_)
            );
            if !is_query {
                return Ok(None);
            }
            let plan = self.plan(handle, prepared).await?;
            check_parameters(parameters, &plan.parameters)?;
            let Ok(steps) = plan.operations(Running { engine: &self.engine, handle, parameters })? else { return Ok(None) };
            planned.push((plan, steps));
        }
        Ok(Some(planned))
    }
}

/// Rows that the ranges of a list may hold together.
const SCANNED_ROWS_MAX: u32 = 10_000;

/// The operations of several statements as one list.
struct Merged {
    operations: Vec<Operation>,
    /// By operation: which of which statement it is.
    places: Vec<(usize, usize)>,
}

impl Merged {
    /// Puts those on one key together, in their order. No operation depends on what another one returned, so that changes nothing but
    /// for ranges, which are read as they were before: `None` if one holds a key that was written by a statement before. `None`
    /// if there is nothing to do, too, or too much: then fewer may do, of the rows that there are.
    fn of<'a>(statements: impl Iterator<Item = &'a [Operation]>) -> Option<Merged> {
        let mut ranges = Vec::new();
        let mut chains: Vec<Vec<((usize, usize), Operation)>> = Vec::new();
        let mut chain_of: BTreeMap<Key, usize> = BTreeMap::new();
        let mut written: Vec<Key> = Vec::new();
        for (statement, operations) in statements.enumerate() {
            for (step, operation) in operations.iter().enumerate() {
                let placed = ((statement, step), operation.clone());
                match operation.key() {
                    Some(key) => {
                        let chain = *chain_of.entry(key.clone()).or_insert_with(|| {
                            chains.push(Vec::new());
                            chains.len() - 1
                        });
                        chains[chain].push(placed);
                        if operation.writes() {
                            written.push(key.clone());
                        }
                    }
                    None => {
                        let (range, _) = operation.range().expect("what has no key has a range");
                        if written.iter().any(|key| range.contains(key)) {
                            return None;
                        }
                        ranges.push(placed);
                    }
                }
            }
        }
        let scanned: u32 = ranges.iter().filter_map(|(_, operation)| operation.range()).map(|(_, limit)| limit).sum();
        let (places, operations): (Vec<_>, Vec<_>) = ranges.into_iter().chain(chains.into_iter().flatten()).unzip();
        let fits = operations.len() <= OPERATIONS_MAX && scanned <= SCANNED_ROWS_MAX;
        (fits && !operations.is_empty()).then_some(Merged { operations, places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::KeyRange;

    fn write(key: &str) -> Operation {
        Operation::Write { key: key.into(), value: "v".into() }
    }

    fn scan(prefix: &[u8]) -> Operation {
        Operation::Scan { range: KeyRange::prefix(prefix), limit: 3 }
    }

    fn merged(statements: &[Vec<Operation>]) -> Option<(String, Vec<(usize, usize)>)> {
        let merged = Merged::of(statements.iter().map(Vec::as_slice))?;
        let words: Vec<String> = merged.operations.iter().map(ToString::to_string).collect();
        Some((words.join(" "), merged.places))
    }

    #[test]
    fn operations_on_one_key_come_to_stand_together() {
        let read = |key: &str| Operation::Read { key: key.into() };
        let found = merged(&[vec![write("a"), read("a")], vec![write("b")], vec![scan(b"k"), read("a")]]);
        let (words, places) = found.expect("no range holds what was written");
        assert!(words.ends_with("wa ra ra wb"), "{words}");
        assert_eq!(places, [(2, 0), (0, 0), (0, 1), (2, 1), (1, 0)]);
    }

    #[test]
    fn a_range_is_not_read_after_it_was_written() {
        assert_eq!(merged(&[vec![write("k1")], vec![scan(b"k")]]), None);
        assert!(merged(&[vec![scan(b"k")], vec![write("k1")]]).is_some());
        assert_eq!(merged(&[]), None);
    }
}
