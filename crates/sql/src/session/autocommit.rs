//! Statements that are transactions of their own.
//!
//! A statement that writes reads the nearest replica without locks; the votes validate what it read. If another
//! transaction was in its way it runs again, with locks from a majority, a bounded number of times. So it does if rows
//! of one replica alone make it fail, for nobody has validated those: a key may have been deleted elsewhere a moment ago.
//! Should the session want no locks, it reads an active replica then: what a passive one has may be as old as before.
//! A statement that only reads does so at one timestamp and needs no commit; its first rows are fetched before any is
//! sent, so that it too can run again.
//! Before all that it is tried as [operations](super::one_shot), where the database takes such.
//!
//! All that runs again by itself after a refusal. Not in these tables: messages that a protocol sends again until they are answered, and what
//! it waits for meanwhile. QuAD's times are in `quad/src/config.rs` and `config/src/quad.rs`, Catenae's in `catenae/src/config.rs`, counted in
//! ticks and epochs. Paths begin in `crates`. Of a statement:
//!
//! | what | runs at most | pause | bound |
//! |---|---|---|---|
//! | a statement by itself | 10 times | at random: up to 4 ms, doubled each time, up to 200 ms | [`AUTOCOMMIT_ATTEMPTS_MAX`] |
//! | statements as operations | 10 times; one that turns out to have none then runs as above | the same | the same, in `one_shot.rs`: `operate` |
//! | a definition by itself | 50 times | the same | `DDL_ATTEMPTS_MAX` in `ddl.rs` |
//! | planning ahead of a run, for a description | twice, the second time with tables read at a majority | none | `run.rs`: `plan_ahead` |
//! | planning, where tables of the cache may be old | twice, the second time with tables read anew | none | `run.rs`: `plan` |
//! | a block of numbers of a sequence, within any of these | 4 times | at random: up to 4 ms, doubled each time, up to 200 ms | `ATTEMPTS_MAX` in `txn/blocks.rs` |
//! | an explicit transaction, or several statements of one text that are no operations | once: the client is told 40001 | | |
//!
//! Beneath each of these runs, in Replicated Commit (`replicated-commit/src/config.rs`) and in quotas:
//!
//! | what | runs at most | pause | bound |
//! |---|---|---|---|
//! | a commit that no region refused for good | 6 times | none | `ATTEMPTS_MAX` |
//! | a locking read that finds rows locked | 7 times | 10 ms, doubled each time | `LOCK_ROUNDS_MAX` rounds after the first |
//! | a snapshot read | 5 times, each at a higher timestamp | none | `SNAPSHOT_MOVES_MAX` moves |
//! | a redistribution of tokens for an operation | 4 times, twice if too few sites answer | until the next redistribution | `TRIES_MAX` in `quota/src/site/waiting.rs` |
//!
//! What an operator asks for:
//!
//! | what | runs at most | pause | bound |
//! |---|---|---|---|
//! | a number of cores, `ALTER DATABASE … SET cores = 2` | 20 times | 0.5 s | `CORES_ATTEMPTS_MAX` in `sql/src/protocols/quorums.rs` |
//! | the declaration that regions are lost | 5 times | 1 s | `DECLARE_ATTEMPTS_MAX` in `node/src/gateway/placements.rs` |
//! | a step of `rhumb plan apply` | again for an hour, or for 30 s while the cluster does not answer | 0.5 s | `STEP_MAX`, `TROUBLE_MAX` in `cli/src/commands/plan/apply.rs` |
//! | a transaction or a batch of rows of `rhumb bench` | 10 times | at random: up to 10 ms, doubled each time, up to 1 s | `ATTEMPTS_MAX` in `bench/src/client/postgres/retry.rs` |

use super::outcome::outcome;
use super::prepared::Prepared;
use super::{Open, Outcome, Session, State, as_of};
use crate::context::ReadPreference;
use crate::error::{SqlError, SqlResult};
use crate::executor::{Effect, Plan, RowStream};
use crate::parser::StatementKind;
use crate::txn::TransactionHandle;
use crate::types::Datum;
use futures::StreamExt;
use rhumb_commit::transaction::ReadMode;
use std::sync::Arc;
use std::time::Duration;

/// How often an autocommit statement is run before its conflict is reported.
pub const AUTOCOMMIT_ATTEMPTS_MAX: u32 = 10;
/// Half of the longest wait before the second attempt, in milliseconds; it doubles with each further one.
const BACKOFF_MILLIS: u64 = 2;
/// The longest wait before any attempt, in milliseconds.
const BACKOFF_MILLIS_MAX: u64 = 200;

impl Session {
    /// Runs a statement as a transaction of its own.
    pub(super) async fn autocommit(&mut self, prepared: &Prepared, parameters: &[Datum]) -> SqlResult<Outcome> {
        if let Some(outcome) = self.one_shot_statement(prepared, parameters).await? {
            return Ok(outcome);
        }
        let mut attempt = 0;
        loop {
            self.drawn.begin_again();
            let mode = self.autocommit_mode(prepared, attempt)?;
            attempt += 1;
            match self.attempt(mode, prepared, parameters, attempt > 1).await {
                Err(error) if attempt == 1 && mode.is_optimistic() && error.may_depend_on_rows() => {}
                Err(error) if error.is_retryable() && attempt < AUTOCOMMIT_ATTEMPTS_MAX => self.back_off(attempt).await?,
                result => return result,
            }
        }
    }

    /// Waits before the attempt after `attempt`.
    pub(super) async fn back_off(&self, attempt: u32) -> SqlResult<()> {
        let pause = async {
            let longest = BACKOFF_MILLIS.saturating_mul(1 << attempt.min(16)).min(BACKOFF_MILLIS_MAX) * 1_000;
            // By chance, so that two statements in each other's way part.
            let pause = Duration::from_micros(self.engine.environment.draw(longest + 1));
            self.engine.environment.sleep(pause).await;
            Ok(())
        };
        self.interrupt.within(pause).await
    }

    async fn attempt(&mut self, mode: ReadMode, prepared: &Prepared, parameters: &[Datum], again: bool) -> SqlResult<Outcome> {
        let options = self.facts.settings.commit_options();
        let kind = &prepared.statement.kind;
        let handle = self.interrupt.within(TransactionHandle::begin_repeatable(&self.home, mode)).await?;
        self.note_rounds(&handle).await;
        let run = async {
            let (plan, effect) = self.run_plan(&handle, prepared, parameters).await?;
            let effect = match effect {
                Effect::Rows(rows) => Effect::Rows(self.first_page(rows).await?),
                written => written,
            };
            SqlResult::<(Arc<Plan>, Effect)>::Ok((plan, effect))
        };
        match run.await {
            // Another replica, asked without locks again, may be behind as well; and under locks what this gateway remembers of the
            // table may be old, so that the rows are those of one that was dropped.
            Err(error) if !mode.is_read_only() && (again || !mode.is_optimistic()) && error.may_depend_on_rows() => {
                Err(handle.validate(options).await.err().unwrap_or(error))
            }
            Err(error) => {
                handle.rollback(error.is_retryable()).await;
                Err(error)
            }
            // Numbers are given, or set, before the client is told of them.
            Ok((plan, Effect::Rows(rows))) if matches!(kind, StatementKind::Numbers(_)) => {
                let rows = self.gathered(rows).await?;
                self.commit_transaction(&handle).await?;
                self.interrupt.disarm();
                Ok(outcome(kind, &plan, Effect::Rows(rows)))
            }
            Ok((plan, effect @ Effect::Rows(_))) => {
                self.state = State::Implicit(Open::new(mode, Some(handle), self.facts.settings.clone()));
                Ok(outcome(kind, &plan, effect))
            }
            Ok((plan, effect)) => {
                self.commit_transaction(&handle).await?;
                // Too late to be late.
                self.interrupt.disarm();
                Ok(outcome(kind, &plan, effect))
            }
        }
    }

    /// The same rows, the first page of them already here.
    async fn first_page(&self, mut rows: RowStream) -> SqlResult<RowStream> {
        let first = self.interrupt.within(async { rows.next().await.transpose() }).await?;
        Ok(futures::stream::iter(first.map(Ok)).chain(rows).boxed())
    }

    pub(super) fn autocommit_mode(&self, prepared: &Prepared, attempt: u32) -> SqlResult<ReadMode> {
        let kind = &prepared.statement.kind;
        if let Some(text) = &prepared.statement.as_of {
            return as_of::timestamp(text, self.engine.now()).map(ReadMode::Stale);
        }
        let locks = kind.locks_rows();
        if self.begins_read_only() && (locks || kind.writes()) {
            return Err(SqlError::read_only(kind.name()));
        }
        Ok(match self.facts.settings.read_preference() {
            _ if locks => ReadMode::Locking,
            ReadPreference::Locking => ReadMode::Locking,
            ReadPreference::Optimistic if attempt == 0 => ReadMode::Optimistic,
            ReadPreference::Optimistic | ReadPreference::Active => ReadMode::Active,
            ReadPreference::Default if !kind.writes() => ReadMode::Snapshot,
            ReadPreference::Default if attempt == 0 => ReadMode::Optimistic,
            ReadPreference::Default => ReadMode::Locking,
        })
    }
}
