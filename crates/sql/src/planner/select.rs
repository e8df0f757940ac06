//! SELECT from one table, in the order of a key or in none: read, filtered and projected page by page.

use super::Planning;
use super::expression::{Expressions, holds_query};
use super::parameters::Parameters;
use super::returning;
use crate::engine::analyze;
use crate::error::SqlResult;
use crate::executor::access::Access;
use crate::executor::evaluate::Scope;
use crate::executor::select::{Select, SelectPlan};
use crate::executor::{Body, Plan};
use crate::parser::fold;
use crate::pg_catalog::is_system_table;
use crate::schema::TableDescriptor;
use crate::txn::Active;
use crate::types::SqlType;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

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
    filter.as_ref().map_or(Ok(()), |filter| expressions.check_condition(filter))?;
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
    // What the keys answer is compiled all the same: there may be an error in it.
    let filter = filter.map(|filter| compiler.compile(filter)).transpose()?.filter(|_| !access.answers());
    let columns = Some(projection.columns.clone());
    let of_one_row = access.answers() && access.is_single() && projection.is_plain() && limit.is_none() && offset.is_none();
    let select = Select { table: table.clone(), access, filter, projection, reverse, limit, offset, of_one_row };
    let body = Body::Select(SelectPlan(Arc::new(select)));
    Ok(Some(Plan::of(vec![table], compiler.parameters, columns, body)))
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
