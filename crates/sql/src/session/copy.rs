//! COPY … FROM STDIN: rows arrive in pieces, are parsed one by one and inserted in bounded batches.
//!
//! A COPY is one statement and so one transaction, or part of one: all of its rows are there in the end, or none. Where a commit carries
//! out operations, a COPY that stands alone is nothing else: its rows are kept until all are there, and no key is read before.

use super::copy_in::{CopyIn, Fields, Input, Lines, Sink, Tuples, fields};
use super::{Company, Open, Outcome, Session, State};
use crate::catalog::visible;
use crate::context::ReadPreference;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::writer::Unsettled;
use crate::executor::{Running, Steps};
use crate::one_shot::{Merged, Unmerged};
use crate::parser::{CopyFrom, CopyKind, fold, unqualified};
use crate::planner::{Existing, defaults, writer};
use crate::storage::{Batch, OnConflict};
use crate::txn::Active;
use bytes::BytesMut;
use rhumb_commit::transaction::{Operated, ReadMode};
use std::collections::BTreeSet;

impl Session {
    pub(super) async fn begin_copy(&mut self, copy: &CopyFrom, company: Company) -> SqlResult<Outcome> {
        let travels = company == Company::Alone && self.may_operate();
        if matches!(self.state, State::Idle) && company == Company::Alone {
            if self.begins_read_only() {
                return Err(SqlError::read_only("COPY FROM"));
            }
            let settings = self.facts.settings.clone();
            let mode = if settings.read_preference() == ReadPreference::Active { ReadMode::Active } else { ReadMode::Optimistic };
            self.state = State::Implicit(Open::new(mode, None, settings));
        }
        let (handle, mode) = self.transaction().await?;
        if mode.is_read_only() {
            return Err(SqlError::read_only("COPY FROM"));
        }
        let (table, writer) = {
            let mut active = handle.lock().await?;
            active.txn.bound_waits(self.longest_wait());
            let name = fold(&unqualified(&copy.table, &self.facts.database)?);
            let Active { txn, catalog, .. } = &mut *active;
            let table = catalog.table(txn.as_mut(), &self.facts.database, &name).await?;
            let (writer, _) = writer(self.planning(), &mut active, &table, Existing::Kept).await?;
            (table, writer)
        };
        let columns: Vec<usize> = match copy.columns.as_slice() {
            [] => table.visible_columns().collect(),
            names => names.iter().map(|name| visible(&table, &fold(name))).collect::<SqlResult<_>>()?,
        };
        let mut named = BTreeSet::new();
        if let Some(&twice) = columns.iter().find(|column| !named.insert(**column)) {
            return Err(SqlError::duplicate_column(&table.columns[twice].name));
        }
        let defaults = defaults(self.planning(), &mut *handle.lock().await?, &table, &columns, &[]).await?;
        // The rows that its rows reference are to be looked up.
        let sink = if travels && !writer.references() {
            Sink::Operations { steps: Steps::new(table.clone()), bytes: 0 }
        } else {
            Sink::Batch(Batch::default())
        };
        Ok(Outcome::Copy(Box::new(CopyIn {
            handle,
            writer,
            columns,
            defaults,
            unsettled: Unsettled::default(),
            input: match copy.format.kind {
                CopyKind::Binary => Input::Tuples(Tuples::default()),
                CopyKind::Text | CopyKind::Csv => Input::Lines(Lines::new(&copy.format)),
            },
            header_pending: copy.format.header,
            format: copy.format.clone(),
            line: 0,
            sink,
            rows: 0,
        })))
    }

    /// Takes a piece of the data. An error has already failed the transaction.
    pub async fn copy_data(&mut self, copy: &mut CopyIn, data: &[u8]) -> SqlResult<()> {
        let Err(error) = self.take_copy_data(copy, data).await else { return Ok(()) };
        let error = self.validated(&copy.handle, error).await;
        self.fail(&error).await;
        Err(error)
    }

    /// The data is complete.
    pub async fn copy_done(&mut self, mut copy: Box<CopyIn>) -> SqlResult<Outcome> {
        let result = async {
            match &mut copy.input {
                Input::Tuples(tuples) => tuples.end()?,
                Input::Lines(lines) => {
                    if let Some(line) = lines.last()? {
                        self.take_line(&mut copy, &line).await?;
                    }
                }
            }
            self.flush_copy(&mut copy).await?;
            self.settle_copy(&mut copy).await?;
            self.operate_copy(&mut copy).await
        }
        .await;
        match result {
            Ok(()) => Ok(Outcome::Done(format!("COPY {}", copy.rows))),
            Err(error) => {
                let error = self.validated(&copy.handle, error).await;
                self.fail(&error).await;
                Err(error)
            }
        }
    }

    /// The client gave the COPY up.
    pub async fn copy_fail(&mut self, reason: &str) -> SqlError {
        let error = SqlError::new(SqlState::QueryCanceled, format!("COPY from stdin failed: {reason}"));
        self.fail(&error).await;
        error
    }

    async fn take_copy_data(&mut self, copy: &mut CopyIn, data: &[u8]) -> SqlResult<()> {
        match &mut copy.input {
            Input::Lines(lines) => lines.push(data),
            Input::Tuples(tuples) => tuples.push(data),
        }
        loop {
            match &mut copy.input {
                Input::Lines(lines) => match lines.take()? {
                    Some(line) => self.take_line(copy, &line).await?,
                    None => break,
                },
                Input::Tuples(tuples) => match tuples.take()? {
                    Some(fields) => self.take_row(copy, &Fields::Binary(fields)).await?,
                    None => break,
                },
            }
            if copy.sink.is_full() {
                self.flush_copy(copy).await?;
            }
        }
        Ok(())
    }

    async fn take_line(&self, copy: &mut CopyIn, line: &BytesMut) -> SqlResult<()> {
        if std::mem::take(&mut copy.header_pending) {
            copy.line += 1;
            return Ok(());
        }
        let fields = fields(&copy.format, line).map_err(|error| copy.place(error))?;
        self.take_row(copy, &Fields::Text(fields)).await
    }

    async fn take_row(&self, copy: &mut CopyIn, fields: &Fields) -> SqlResult<()> {
        copy.line += 1;
        let cx = Running { engine: &self.engine, handle: &copy.handle, drawn: &self.drawn, parameters: &[] };
        let row = match copy.defaults.draw() {
            true => self.interrupt.within(copy.row(cx, fields)).await,
            false => copy.row(cx, fields).await,
        };
        let row = row.map_err(|error| copy.place(error))?;
        if matches!(copy.sink, Sink::Operations { .. }) {
            copy.writer.check(&self.engine, 1, |_| &row).map_err(|error| copy.place(error))?;
        }
        copy.sink.take(row)?;
        copy.rows += 1;
        Ok(())
    }

    async fn flush_copy(&self, copy: &mut CopyIn) -> SqlResult<()> {
        let Sink::Batch(batch) = &mut copy.sink else { return Ok(()) };
        let rows = batch.take();
        if rows.is_empty() {
            return Ok(());
        }
        self.interrupt
            .within(async {
                let mut active = copy.handle.lock().await?;
                copy.writer.insert(&self.engine, &mut active, &rows, &OnConflict::Error, &mut copy.unsettled).await
            })
            .await?;
        Ok(())
    }

    async fn settle_copy(&self, copy: &mut CopyIn) -> SqlResult<()> {
        let unsettled = std::mem::take(&mut copy.unsettled);
        self.interrupt.within(async { copy.writer.settle(&mut *copy.handle.lock().await?, unsettled).await }).await
    }

    /// Commits the rows of a COPY that travels.
    async fn operate_copy(&mut self, copy: &mut CopyIn) -> SqlResult<()> {
        let Sink::Operations { steps, .. } = &copy.sink else { return Ok(()) };
        let merged = match Merged::of(std::iter::once(steps.operations())) {
            Err(Unmerged::Nothing) => return Ok(()),
            merged => merged.map_err(|unmerged| unmerged.error(self.home.protocol()))?,
        };
        // Nothing ends the commit that follows.
        self.interrupt.check()?;
        match copy.handle.operate(merged.operations).await? {
            Operated::Done(..) => {
                // Too late to be late.
                self.interrupt.disarm();
                Ok(())
            }
            Operated::Failed { place, why } => Err(steps.blame(merged.places[place].1, &why)),
        }
    }
}
