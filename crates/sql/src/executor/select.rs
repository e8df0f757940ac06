//! SELECT from one table as it runs: read, filtered and projected page by page.

use super::access::Access;
use super::evaluate::{Compiled, constant};
use super::keys::Keys;
use super::operations::{CONDITIONAL, FALLIBLE, Steps, Unfit};
use super::returning::{Projection, input_of};
use super::{Effect, Running};
use crate::engine::{Engine, from_datafusion};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::TableDescriptor;
use crate::storage::{self, Row};
use crate::types::{Datum, SqlType, coerce};
use datafusion::logical_expr::Expr;
use futures::StreamExt;
use rhumb_commit::one_shot::operation::SCAN_ROWS_MAX;
use std::collections::VecDeque;
use std::sync::Arc;

/// A SELECT on the fast path.
#[derive(Clone, Debug)]
pub struct SelectPlan(pub Arc<Select>);

/// What it reads and shows.
#[derive(Debug)]
pub struct Select {
    pub table: Arc<TableDescriptor>,
    pub access: Access,
    pub filter: Option<Compiled>,
    pub projection: Projection,
    pub reverse: bool,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    /// True if it shows columns of at most one row, which its key alone tells: nothing is evaluated, and nothing comes in pages.
    pub of_one_row: bool,
}

impl SelectPlan {
    /// Runs it; rows are read as the stream is polled.
    pub fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        let select = self.0.clone();
        if select.of_one_row {
            return select.one_row(cx);
        }
        let (limit, offset) = select.counts(cx.parameters)?;
        let keys = select.access.resolve(&select.table, cx.parameters)?.reversed(select.reverse);
        let rows = keys.with_limit(limit.map(|limit| limit.saturating_add(offset))).open(select.table.clone());
        let (handle, engine, parameters) = (cx.handle.clone(), cx.engine.clone(), cx.parameters.to_vec());
        // What was read at once may be shown in several parts.
        let charge = engine.query_memory("rows that are not shown yet");
        let state = (rows, VecDeque::new(), offset, limit.unwrap_or(usize::MAX), charge);
        let pages = futures::stream::try_unfold(state, move |(mut rows, mut kept, mut skip, mut left, charge)| {
            let (select, handle, engine, parameters) = (select.clone(), handle.clone(), engine.clone(), parameters.clone());
            async move {
                while kept.is_empty() {
                    if left == 0 {
                        return Ok(None);
                    }
                    let mut active = handle.lock().await?;
                    let page = rows.next_page(active.txn.as_mut()).await?;
                    drop(active);
                    if page.is_empty() {
                        return Ok(None);
                    }
                    kept = select.counted(select.kept(&engine, &parameters, page)?, &mut skip, &mut left).into();
                }
                let shown = select.projection.page(&engine, &mut kept, &parameters)?;
                let held = kept.iter().flatten().map(Datum::size).sum();
                charge.try_resize(held).map_err(|error| from_datafusion(&error))?;
                Ok(Some((shown, (rows, kept, skip, left, charge))))
            }
        });
        Ok(Effect::Rows(pages.boxed()))
    }
}

impl SelectPlan {
    /// Whether it may become operations: it reads rows by their primary keys, or so many at the beginning of a range of them.
    pub fn fit(&self) -> Result<(), Unfit> {
        let Select { access, projection, filter, limit, reverse, .. } = &*self.0;
        let is_first_of_range = || matches!(access.order(), Some((None, _))) && limit.is_some() && !reverse;
        match access.is_complete() || filter.is_none() {
            true if projection.is_plain() && (access.is_of_points() || is_first_of_range()) => Ok(()),
            true if projection.is_plain() => Err(CONDITIONAL),
            _ => Err(FALLIBLE),
        }
    }

    /// The same as operations, if it is [fit](Self::fit).
    pub fn operations(&self, cx: Running<'_>) -> SqlResult<Result<Steps, Unfit>> {
        let select = &*self.0;
        let (limit, offset) = select.counts(cx.parameters)?;
        let mut steps = Steps::new(select.table.clone());
        if let Some(keys) = select.access.points(&select.table, cx.parameters)? {
            keys.into_iter().for_each(|key| steps.read(key));
            return Ok(Ok(steps));
        }
        let Keys::Range { spec, complete: true } = select.access.resolve(&select.table, cx.parameters)? else {
            return Ok(Err(CONDITIONAL));
        };
        let rows = limit.and_then(|limit| u32::try_from(limit.saturating_add(offset)).ok());
        match (storage::primary_range(&select.table, &spec)?, rows) {
            (Some(range), Some(limit @ 1..=SCAN_ROWS_MAX)) if !select.reverse && !range.is_empty() => steps.scan(range, limit),
            _ => return Ok(Err(CONDITIONAL)),
        }
        Ok(Ok(steps))
    }

    /// What is told of the rows that its operations read: their keys say that they satisfy the conditions.
    pub fn read(&self, cx: Running<'_>, rows: Vec<Row>) -> SqlResult<Effect> {
        let (limit, mut skip) = self.0.counts(cx.parameters)?;
        let rows = self.0.counted(rows, &mut skip, &mut limit.unwrap_or(usize::MAX));
        let shown = self.0.projection.pick(rows);
        Ok(Effect::Rows(futures::stream::once(std::future::ready(Ok(shown))).boxed()))
    }
}

impl Select {
    /// The one row, read once the stream is polled.
    fn one_row(self: Arc<Select>, cx: Running<'_>) -> SqlResult<Effect> {
        let mut rows = self.access.resolve(&self.table, cx.parameters)?.open(self.table.clone());
        let handle = cx.handle.clone();
        let shown = async move {
            let mut active = handle.lock().await?;
            let page = rows.next_page(active.txn.as_mut()).await?;
            Ok(self.projection.pick(page))
        };
        Ok(Effect::Rows(futures::stream::once(shown).boxed()))
    }

    /// LIMIT and OFFSET.
    fn counts(&self, parameters: &[Datum]) -> SqlResult<(Option<usize>, usize)> {
        let count = |expr: &Option<Expr>, name| expr.as_ref().map(|expr| row_count(expr, parameters, name)).transpose();
        Ok((count(&self.limit, "LIMIT")?.flatten(), count(&self.offset, "OFFSET")?.flatten().unwrap_or(0)))
    }

    /// Those rows of a page that satisfy the conditions.
    fn kept(&self, engine: &Engine, parameters: &[Datum], mut page: Vec<Row>) -> SqlResult<Vec<Row>> {
        if let Some(filter) = &self.filter {
            let mut kept = filter.select(engine, page.len(), |row, input| input_of(&page[row], parameters, input))?.into_iter();
            page.retain(|_| kept.next() == Some(true));
        }
        Ok(page)
    }

    /// Those rows of a page that are shown, after `skip` of them, and up to `left`.
    fn counted(&self, mut page: Vec<Row>, skip: &mut usize, left: &mut usize) -> Vec<Row> {
        let skipped = (*skip).min(page.len());
        page.drain(..skipped);
        *skip -= skipped;
        page.truncate(*left);
        *left -= page.len();
        page
    }
}

/// The value of a LIMIT or OFFSET; `None` for NULL. Errors 2201W, 2201X.
fn row_count(expr: &Expr, parameters: &[Datum], name: &str) -> SqlResult<Option<usize>> {
    let negative = match name {
        "OFFSET" => SqlState::InvalidRowCountInResultOffsetClause,
        _ => SqlState::InvalidRowCountInLimitClause,
    };
    match coerce(&SqlType::Int8, constant(expr, parameters)?)? {
        Datum::Int64(None) => Ok(None),
        Datum::Int64(Some(count)) => {
            usize::try_from(count).map(Some).map_err(|_| SqlError::new(negative, format!("{name} must not be negative")))
        }
        other => Err(SqlError::internal(format!("{other} is no number of rows"))),
    }
}
