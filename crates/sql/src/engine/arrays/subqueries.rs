//! Comparisons with the rows of a subquery: `IN`, `= ANY (SELECT …)`, `> ALL (SELECT …)` and the like, whose value is NULL where it depends on a NULL.
//!
//! The query engine joins with the subquery, and a join knows true and not true alone. So it is left to do that only where no more is asked for, as a condition
//! of `WHERE`, and where it does it right. Elsewhere the rows become an array, which is made once if the subquery is the same for all rows, and the
//! comparison one with an array.

use super::quantified::{Quantified, name};
use crate::engine::from_sql;
use crate::error::SqlError;
use crate::types::Datum;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ExprSchema, Result};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::logical_plan::Projection;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF, Subquery, lit};
use std::sync::Arc;

/// A comparison with all or any of the rows of a subquery.
struct Comparison {
    value: Expr,
    op: Operator,
    all: bool,
    rows: Subquery,
}

impl Comparison {
    fn of(expr: &Expr) -> Option<Comparison> {
        let (value, op, all, rows) = match expr {
            Expr::InSubquery(InSubquery { expr, subquery, negated: false }) => (expr, Operator::Eq, false, subquery),
            Expr::InSubquery(InSubquery { expr, subquery, negated: true }) => (expr, Operator::NotEq, true, subquery),
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                (expr, *op, *quantifier == SetQuantifier::All, subquery)
            }
            _ => return None,
        };
        Some(Comparison { value: value.as_ref().clone(), op, all, rows: rows.clone() })
    }

    /// The comparison that is true where this one is false, and NULL where it is.
    fn negated(mut self) -> Result<Comparison> {
        let Some(op) = self.op.negate() else { return Err(from_sql(SqlError::unsupported(format!("{} of a subquery", self.op)))) };
        (self.op, self.all) = (op, !self.all);
        Ok(self)
    }

    /// The column of the rows.
    fn element(&self) -> Expr {
        Expr::Column(Column::from(self.rows.subquery.schema().qualified_field(0)))
    }

    /// What the select list computes, and from which rows; `None`: it is a column.
    fn computed_item(&self) -> Option<(Expr, &Arc<LogicalPlan>)> {
        let LogicalPlan::Projection(Projection { expr, input, .. }) = self.rows.subquery.as_ref() else { return None };
        let item = expr.first()?.clone().unalias();
        (!matches!(item, Expr::Column(_))).then_some((item, input))
    }

    fn is_correlated(&self) -> bool {
        !self.rows.outer_ref_columns.is_empty()
    }

    fn may_be_null(&self, schema: &DFSchema) -> Result<bool> {
        Ok(self.rows.subquery.schema().field(0).is_nullable() || self.value.nullable(schema)?)
    }

    /// As a condition that rows must meet: false says as much as NULL.
    fn condition(self, schema: &DFSchema) -> Result<Expr> {
        let this = self.with_plain_value()?;
        let is_computed = this.is_correlated() && this.computed_item().is_some();
        match (this.op, this.all) {
            (Operator::Eq, false) if !is_computed => Ok(this.membership(false)),
            (Operator::NotEq, true) if !is_computed && !this.may_be_null(schema)? => Ok(this.membership(true)),
            // What is asked with the value would have the value's own subqueries within it.
            _ if this.is_correlated() && !has_subquery(&this.value) => this.existence(schema),
            _ => this.value(),
        }
    }

    /// The same with the comparisons in its own value rewritten.
    fn with_plain_value(mut self) -> Result<Comparison> {
        self.value = in_expression(self.value)?.data;
        Ok(self)
    }

    fn membership(self, negated: bool) -> Expr {
        Expr::InSubquery(InSubquery { expr: Box::new(self.value), subquery: self.rows, negated })
    }

    /// Whether there is a row for which it holds, or none for which it does not.
    fn existence(self, schema: &DFSchema) -> Result<Expr> {
        let value = self.value.clone().transform_up(|expr| match expr {
            Expr::Column(column) => {
                let field = ExprSchema::field_from_column(schema, &column)?.clone();
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        // What is computed would have a name of its own in the join, which may be that of a column there.
        let (element, rows) = self.computed_item().unwrap_or_else(|| (self.element(), &self.rows.subquery));
        let holds = Expr::BinaryExpr(BinaryExpr::new(Box::new(value.data), self.op, Box::new(element)));
        let decides = if self.all { Expr::IsNotTrue(Box::new(holds)) } else { holds };
        // One filter: the query engine loses columns between two that it turns into a join.
        let (decides, rows) = match rows.as_ref() {
            LogicalPlan::Filter(filter) => (filter.predicate.clone().and(decides), &filter.input),
            _ => (decides, rows),
        };
        let rows = LogicalPlanBuilder::from(rows.as_ref().clone()).filter(decides)?.project([lit(1_i32)])?.build()?;
        let outer_ref_columns = rows.all_out_ref_exprs();
        let subquery = Subquery { subquery: Arc::new(rows), outer_ref_columns, spans: self.rows.spans };
        Ok(Expr::Exists(Exists { subquery, negated: self.all }))
    }

    /// True, false or NULL.
    fn value(self) -> Result<Expr> {
        let op = if self.op == Operator::NotEq { "<>".to_owned() } else { self.op.to_string() };
        let Some(function) = name(&op, self.all).as_deref().and_then(Quantified::named) else {
            return Err(from_sql(SqlError::unsupported(format!("{} with the rows of a subquery", self.op))));
        };
        let element = self.element();
        let ty = self.rows.subquery.schema().field(0).data_type();
        let none = Datum::List(Datum::new_list_nullable(&[], ty));
        let rows = LogicalPlanBuilder::from(self.rows.subquery.as_ref().clone())
            .aggregate(Vec::<Expr>::new(), vec![array_agg_udaf().call(vec![element])])?
            .build()?;
        let subquery = Subquery { subquery: Arc::new(rows), ..self.rows };
        // There may be no rows.
        let args = vec![Expr::ScalarSubquery(subquery), Expr::Literal(none, None)];
        let rows = datafusion::functions::core::coalesce().call(args);
        Ok(ScalarUDF::from(function).call(vec![self.value, rows]))
    }
}

/// The condition of a filter with its comparisons rewritten. The query engine joins with the subqueries that are `is_joinable`.
pub fn in_condition(expr: Expr, schema: &DFSchema, is_joinable: fn(&Subquery) -> bool) -> Result<Transformed<Expr>> {
    if !has_comparison(&expr) {
        return Ok(Transformed::no(expr));
    }
    let of_one = |expr: Expr| {
        let negated = if let Expr::Not(inner) = &expr { Comparison::of(inner).map(Comparison::negated).transpose()? } else { None };
        match negated.or_else(|| Comparison::of(&expr)) {
            Some(comparison) if is_joinable(&comparison.rows) => comparison.condition(schema),
            Some(comparison) => comparison.with_plain_value()?.value(),
            None => Ok(in_expression(expr)?.data),
        }
    };
    let conjuncts = split_conjunction_owned(expr).into_iter().map(of_one).collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(conjunction(conjuncts).unwrap_or_else(|| Expr::Literal(Datum::Boolean(Some(true)), None))))
}

/// Any other expression with its comparisons rewritten.
pub fn in_expression(expr: Expr) -> Result<Transformed<Expr>> {
    if !has_comparison(&expr) {
        return Ok(Transformed::no(expr));
    }
    expr.transform_up(|expr| match Comparison::of(&expr) {
        Some(comparison) => comparison.value().map(Transformed::yes),
        None => Ok(Transformed::no(expr)),
    })
}

fn has_comparison(expr: &Expr) -> bool {
    // An error does not come of a test.
    expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::SetComparison(_)))).unwrap_or(true)
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_)) || has_comparison(expr))).unwrap_or(true)
}
