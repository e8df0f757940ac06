//! What the query engine's planner has made of a statement, as PostgreSQL means it: the types that operands have in common, casts, comparisons with the rows of
//! subqueries, sums that are checked.

mod branches;
mod constants;
mod correlated;
mod hoisted;
mod intervals;
mod operands;
mod operators;
mod subqueries;
mod unions;

pub use operands::check_condition;
pub use operators::Planner;

use crate::engine::arrays::subqueries as compared;
use crate::engine::arrays::typing::{Role, as_type, elements_of, is_unknown, roles, settled, type_of};
use crate::engine::arrays::{COALESCE, text_of_array};
use crate::engine::tree::{any, rewrite, rewrite_plan};
use crate::engine::{arithmetic, casts, decimals, from_sql, multisets, nullable, reading, rounding};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, SqlType};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

/// The plan with every expression settled: operands and branches of one type, casts, conditions and comparisons with the rows of subqueries as PostgreSQL
/// means them.
pub fn settle_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_plan(plan, &mut settle_node)
}

fn settle_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = &node
        && let Some((joined, condition)) = hoisted::conditions_after(join)?
    {
        return settle_node(hoisted::filtered(settle_node(joined)?.data, condition)?);
    }
    let mut schema = DFSchema::empty();
    node.inputs().iter().for_each(|input| schema.merge(input.schema()));
    if let LogicalPlan::Filter(filter) = &node {
        check_condition(&filter.predicate, &schema, "WHERE").map_err(from_sql)?;
    }
    if let LogicalPlan::RecursiveQuery(query) = &node {
        return Ok(unions::with_types_of_first(query)?.map_or_else(|| Transformed::no(node), Transformed::yes));
    }
    if let LogicalPlan::Union(union) = &node {
        return Ok(unions::settled(union)?.map_or_else(|| Transformed::no(node), Transformed::yes));
    }
    // The number of a LIMIT must stay as simple as it is.
    if matches!(node, LogicalPlan::Limit(_)) {
        return Ok(Transformed::no(node));
    }
    let changed = with_settled_expressions(node, &schema)?;
    // Also where only what is below it has other types now.
    let settled = changed.map_data(LogicalPlan::recompute_schema)?;
    let hoisted = hoisted::hoisted(&settled.data)?;
    let settled = hoisted.map_or(settled, Transformed::yes);
    Ok(multisets::counted(&settled.data)?.map_or(settled, Transformed::yes))
}

fn with_settled_expressions(node: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    let (is_condition, is_order) = (matches!(node, LogicalPlan::Filter(_)), matches!(node, LogicalPlan::Sort(_)));
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let settled = settle(expr, schema)?;
        let compared = settled.transform_data(|expr| match is_condition {
            true => compared::in_condition(expr, schema, correlated::is_joinable)?
                .transform_data(|expr| rewrite(expr, &mut subqueries::of_other_existence)),
            false => compared::in_expression(expr)?.transform_data(|expr| rewrite(expr, &mut subqueries::of_existence)),
        })?;
        let single = compared.transform_data(|expr| rewrite(expr, &mut subqueries::of_value))?;
        let nullable = single.transform_data(with_nullable_subqueries)?;
        let checked = nullable.transform_data(|expr| arithmetic::in_expression(expr, schema))?;
        let ordered = match is_order {
            true => checked.transform_data(|expr| Ok(intervals::ordered(expr, schema)))?,
            false => checked,
        };
        Ok(ordered.update_data(|expr| name.restore(expr)))
    })
}

fn with_nullable_subqueries(expr: Expr) -> Result<Transformed<Expr>> {
    rewrite(expr, &mut |expr| match expr {
        Expr::ScalarSubquery(subquery) => Ok(match nullable::made_nullable(&subquery)? {
            Some(changed) => Transformed::yes(Expr::ScalarSubquery(changed)),
            None => Transformed::no(Expr::ScalarSubquery(subquery)),
        }),
        other => Ok(Transformed::no(other)),
    })
}

/// The same of an expression.
pub fn settle(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    rewrite(expr, &mut |expr| of_one(expr, schema).map_err(from_sql))
}

fn of_one(expr: Expr, schema: &DFSchema) -> SqlResult<Transformed<Expr>> {
    if let Some(read) = constants::read(&expr, schema)? {
        operands::check(&read, schema)?;
        return of_typed(read, schema).map(|typed| Transformed::yes(typed.data));
    }
    operands::check(&expr, schema)?;
    of_typed(expr, schema)
}

fn of_typed(expr: Expr, schema: &DFSchema) -> SqlResult<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let is_known = !args.iter().any(is_unknown);
            let roles = match func.name() {
                COALESCE if is_known || !args.iter().any(|arg| is_array(arg, schema)) => None,
                COALESCE => Some(vec![Role::List; args.len()]),
                "make_array" => (!is_known).then(|| vec![Role::Element; args.len()]),
                name => roles(name).map(<[Role]>::to_vec),
            };
            let is_coalesce = func.name() == COALESCE;
            let changed = |args| Expr::ScalarFunction(ScalarFunction { func, args });
            match roles {
                None => Ok(Transformed::no(changed(args))),
                Some(roles) if is_known => elements_of(&roles, &args, schema).map(|_| Transformed::no(changed(args))),
                Some(roles) if roles.contains(&Role::List) && !is_coalesce && elements_of(&roles, &args, schema)?.is_none() => {
                    Err(SqlError::new(SqlState::DatatypeMismatch, "could not determine polymorphic type because input has type unknown")
                        .with_hint("Cast it, as in '{1,2}'::int[]."))
                }
                Some(roles) => settled(&roles, args, schema).map(|args| Transformed::yes(changed(args))),
            }
        }
        Expr::InList(InList { expr, list, negated }) if list.iter().any(is_unknown) && is_array(&expr, schema) => {
            let ty = type_of(&expr, schema).unwrap_or(SqlType::Text);
            let list = list.into_iter().map(|value| as_type(&ty, value)).collect::<SqlResult<_>>()?;
            Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })))
        }
        Expr::InList(InList { expr, list, negated }) if list.iter().any(depends_on_rows) => {
            let op = if negated { Operator::NotEq } else { Operator::Eq };
            let compared = list.into_iter().map(|item| {
                let pair = Expr::BinaryExpr(BinaryExpr::new(expr.clone(), op, Box::new(item)));
                operands::check(&pair, schema)?;
                Ok(of_typed(pair, schema)?.data)
            });
            let compared = compared.collect::<SqlResult<Vec<_>>>()?;
            Ok(Transformed::yes(joined(compared, if negated { Operator::And } else { Operator::Or })))
        }
        Expr::Cast(Cast { expr, field }) if *field.data_type() == DataType::Utf8 && is_array(&expr, schema) => {
            let text = text_of_array(*expr);
            Ok(Transformed::yes(if SqlType::of_field(&field) == Some(SqlType::Text) {
                text
            } else {
                Expr::Cast(Cast { expr: Box::new(text), field })
            }))
        }
        Expr::Cast(cast) => {
            let from = if is_unknown(&cast.expr) { None } else { type_of(&cast.expr, schema) };
            if let Some(read) = reading::of_cast(&cast, from)? {
                return Ok(Transformed::yes(read));
            }
            let changed = casts::to_text(&cast, schema).or_else(|| rounding::before_cast(&cast, schema));
            let expr = Expr::Cast(cast);
            let changed = changed.or_else(|| intervals::of_expr(&expr, schema));
            Ok(changed.map_or_else(|| Transformed::no(expr), Transformed::yes))
        }
        Expr::BinaryExpr(binary) if !is_long(&binary.left, &binary.right) => {
            let changed = decimals::of_binary(&binary, schema);
            let expr = Expr::BinaryExpr(binary);
            Ok(changed.or_else(|| intervals::of_expr(&expr, schema)).map_or_else(|| Transformed::no(expr), Transformed::yes))
        }
        expr @ Expr::BinaryExpr(_) => Ok(Transformed::no(expr)),
        Expr::Case(case) => {
            let unified = branches::unified(&case, schema);
            Ok(unified.map_or_else(|| Transformed::no(Expr::Case(case)), Transformed::yes))
        }
        expr => Ok(intervals::of_expr(&expr, schema).map_or_else(|| Transformed::no(expr), Transformed::yes)),
    }
}

/// True for what the query engine may take for a constant in a list: it tries that with no rows, and a `CASE` has a value then.
fn depends_on_rows(expr: &Expr) -> bool {
    any(expr, &mut |expr| matches!(expr, Expr::Column(_) | Expr::OuterReferenceColumn(..)))
}

/// All of these by an operator, as a tree that is no deeper than it must be.
fn joined(mut exprs: Vec<Expr>, op: Operator) -> Expr {
    let rest = exprs.split_off(exprs.len().div_ceil(2));
    match exprs.pop() {
        Some(last) if exprs.is_empty() && rest.is_empty() => last,
        Some(last) => {
            exprs.push(last);
            Expr::BinaryExpr(BinaryExpr::new(Box::new(joined(exprs, op)), op, Box::new(joined(rest, op))))
        }
        None => Expr::Literal(Datum::Boolean(Some(op == Operator::And)), None),
    }
}

/// The most operations that the type of an operand may stand on for it to be looked at: each operation of a chain looks at all before it.
const CHAIN_MAX: usize = 256;

/// True for an operation at the end of a chain of more than [`CHAIN_MAX`], which stays the query engine's.
fn is_long(left: &Expr, right: &Expr) -> bool {
    fn before(expr: &Expr) -> Option<&Expr> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, .. }) => Some(left),
            Expr::ScalarFunction(function) => function.args.first(),
            _ => None,
        }
    }
    fn after(expr: &Expr) -> Option<&Expr> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { right, .. }) => Some(right),
            _ => None,
        }
    }
    let left = std::iter::successors(Some(left), |expr| before(expr));
    let right = std::iter::successors(Some(right), |expr| after(expr));
    left.take(CHAIN_MAX + 1).count() > CHAIN_MAX || right.take(CHAIN_MAX + 1).count() > CHAIN_MAX
}

fn is_array(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(type_of(expr, schema), Some(SqlType::Array(_)))
}
