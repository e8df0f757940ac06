//! SELECT from one table, in the order of a key or in none: read, filtered and projected page by page.

use super::access::Access;
use super::evaluate::{Compiled, Scope, constant};
use super::expression::{Expressions, holds_query};
use super::keys::Keys;
use super::operations::{CONDITIONAL, FALLIBLE, Steps, Unfit};
use super::parameters::Parameters;
use super::returning::{self, Projection, input_of};
use super::{Body, Effect, Plan, Planning, Running, analyze};
use crate::engine::{Engine, from_datafusion};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::fold;
use crate::pg_catalog::is_system_table;
use crate::schema::TableDescriptor;
use crate::storage::{self, Row};
use crate::txn::Active;
use crate::types::{Datum, SqlType, coerce};
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use rhumb_commit::one_shot::operation::SCAN_ROWS_MAX;
use std::collections::VecDeque;
use std::sync::Arc;

/// A SELECT on the fast path.
#[derive(Clone, Debug)]
pub struct SelectPlan(Arc<Select>);

#[derive(Debug)]
struct Select {
    table: Arc<TableDescriptor>,
    access: Access,
    filter: Option<Compiled>,
    projection: Projection,
    reverse: bool,
    limit: Option<Expr>,
    offset: Option<Expr>,
}

/// Plans a query here, or says `None`: it is one for the query engine.
pub async fn plan(cx: Planning<'_>, active: &mut Active, query: &ast::Query) -> SqlResult<Option<Plan>> {
    let Some(shape) = Shape::of(query).filter(|shape| !is_system_table(&fold(shape.table))) else { return Ok(None) };
    let table = active.catalog.table(active.txn.as_mut(), &cx.facts.database, &fold(shape.table)).await?;
    let name = shape.alias.map_or_else(|| table.name.clone(), fold);
    let scope = Scope::default().with(&name, &table.arrow_schema());
    let mut expressions = Expressions::new(cx, scope, Parameters::of(query, cx.hints)?)?;

    let filter = shape.selection.map(|selection| expressions.plan_any(selection, Some(&SqlType::Bool))).transpose()?;
    if filter.as_ref().is_some_and(|filter| !analyze::is_scalar(filter)) {
        return Ok(None);
    }
    let access = Access::of(&table, filter.as_slice());
    let Some(reverse) = direction(&table, &access, &shape.order) else { return Ok(None) };
    let aggregates = |expressions: &mut Expressions<'_>, item: &ast::SelectItem| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            Ok(holds_query(expr) || !analyze::is_scalar(&expressions.plan_any(expr, None)?))
        }
        _ => SqlResult::Ok(false),
    };
    for item in shape.items {
        if aggregates(&mut expressions, item)? {
            return Ok(None);
        }
    }
    let projection = returning::plan(&mut expressions, &table, &name, shape.items.to_vec())?;
    let mut count = |expr: Option<&ast::Expr>| expr.map(|expr| expressions.plan(expr, Some(&SqlType::Int8), "LIMIT")).transpose();
    let (limit, offset) = (count(shape.limit)?, count(shape.offset)?);
    if [&limit, &offset].into_iter().flatten().any(|expr| !analyze::is_immutable(expr) || expr.any_column_refs()) {
        return Ok(None);
    }

    let compiler = expressions.finish();
    let projection = projection.compile(&compiler, &table)?;
    let filter = filter.map(|filter| compiler.compile(filter)).transpose()?;
    let columns = Some(projection.columns.clone());
    let select = Select { table: table.clone(), access, filter, projection, reverse, limit, offset };
    Ok(Some(Plan {
        tables: vec![table],
        once: false,
        parameters: compiler.parameters,
        columns,
        body: Body::Select(SelectPlan(Arc::new(select))),
    }))
}

/// The parts of a query that may take the fast path.
struct Shape<'a> {
    table: &'a ast::Ident,
    alias: Option<&'a ast::Ident>,
    items: &'a [ast::SelectItem],
    selection: Option<&'a ast::Expr>,
    order: Vec<(&'a ast::Ident, bool)>,
    limit: Option<&'a ast::Expr>,
    offset: Option<&'a ast::Expr>,
}

impl<'a> Shape<'a> {
    fn of(query: &'a ast::Query) -> Option<Shape<'a>> {
        let ast::SetExpr::Select(select) = query.body.as_ref() else { return None };
        let plain = query.with.is_none() && query.fetch.is_none() && query.for_clause.is_none() && query.pipe_operators.is_empty();
        let ungrouped =
            matches!(&select.group_by, ast::GroupByExpr::Expressions(exprs, modifiers) if exprs.is_empty() && modifiers.is_empty());
        let unadorned = select.distinct.is_none()
            && select.top.is_none()
            && select.into.is_none()
            && select.lateral_views.is_empty()
            && select.prewhere.is_none()
            && select.having.is_none()
            && select.named_window.is_empty()
            && select.qualify.is_none()
            && select.connect_by.is_empty();
        let [from] = select.from.as_slice() else { return None };
        let ast::TableFactor::Table { name, alias, args: None, version: None, sample: None, with_ordinality: false, .. } = &from.relation
        else {
            return None;
        };
        if !(plain && ungrouped && unadorned && from.joins.is_empty()) || alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
            return None;
        }
        if select.selection.as_ref().is_some_and(holds_query) {
            return None;
        }
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(ast::LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(_) => return None,
        };
        Some(Shape {
            table: name.0.last()?.as_ident()?,
            alias: alias.as_ref().map(|alias| &alias.name),
            items: &select.projection,
            selection: select.selection.as_ref(),
            order: order_of(query, &select.projection)?,
            limit,
            offset,
        })
    }
}

/// The columns of ORDER BY, each with true for descending; `None` if it is more than plain columns of the table.
fn order_of<'a>(query: &'a ast::Query, items: &[ast::SelectItem]) -> Option<Vec<(&'a ast::Ident, bool)>> {
    let Some(order) = &query.order_by else { return Some(Vec::new()) };
    let ast::OrderByKind::Expressions(exprs) = &order.kind else { return None };
    let aliases = |ident: &ast::Ident| {
        items.iter().any(|item| matches!(item, ast::SelectItem::ExprWithAlias { alias, .. } if alias.value == ident.value))
    };
    exprs
        .iter()
        .map(|expr| match &expr.expr {
            // The nulls of a key are all at one end; which one is not for ORDER BY to choose here.
            ast::Expr::Identifier(ident) if expr.options.nulls_first.is_none() && expr.with_fill.is_none() && !aliases(ident) => {
                Some((ident, expr.options.asc == Some(false)))
            }
            _ => None,
        })
        .collect()
}

/// Whether the keys are to be read backwards for this order; `None` if they do not come in it either way.
fn direction(table: &TableDescriptor, access: &Access, order: &[(&ast::Ident, bool)]) -> Option<bool> {
    if order.is_empty() || access.is_single() {
        return Some(false);
    }
    let (index, fixed) = access.order()?;
    let key = index.map_or(&table.primary_key, |index| &index.columns);
    let reverse = order[0].1;
    let mut rest = key[fixed..].iter();
    for (ident, descending) in order {
        let column = table.column(&fold(ident))?;
        if key[..fixed].contains(&column) {
            continue;
        }
        if rest.next() != Some(&column) || table.columns[column].nullable || *descending != reverse {
            return None;
        }
    }
    Some(reverse)
}

impl SelectPlan {
    /// Runs it; rows are read as the stream is polled.
    pub fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        let select = self.0.clone();
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

/// The value of a LIMIT or OFFSET; `None` for NULL.
fn row_count(expr: &Expr, parameters: &[Datum], name: &str) -> SqlResult<Option<usize>> {
    match coerce(&SqlType::Int8, constant(expr, parameters)?)? {
        Datum::Int64(None) => Ok(None),
        Datum::Int64(Some(count)) => usize::try_from(count)
            .map(Some)
            .map_err(|_| SqlError::new(SqlState::InvalidParameterValue, format!("{name} must not be negative"))),
        other => Err(SqlError::internal(format!("{other} is no number of rows"))),
    }
}
