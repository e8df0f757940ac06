//! The rules by which the query engine improves plans and operators, but those that change results.

use crate::engine::tree::rewrite;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::optimizer::{PhysicalOptimizer, PhysicalOptimizerRule};
use std::sync::Arc;

/// Of plans: it makes two aggregations of `sum(a), count(DISTINCT b)`, and the sum of sums has another type than they.
const OF_PLANS: [&str; 1] = ["single_distinct_aggregation_to_group_by"];

/// Of operators:
/// - conditions that are moved between operators are given to the first column of their column's name, and two tables of a join may both have one
///   (<https://github.com/apache/datafusion/issues/21246>); they are at the tables by then;
/// - so are the columns of a join that a projection leaves out;
/// - `count(DISTINCT NULL)` is 1 by the statistics of a constant.
const OF_OPERATORS: [&str; 4] = ["FilterPushdown", "FilterPushdown(Post)", "ProjectionPushdown", "aggregate_statistics"];

/// The rule before which comparisons are made [`Plain`].
const PUSHES_DOWN: &str = "push_down_filter";

/// The rules for plans.
pub fn of_plans() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    rules.retain(|rule| !OF_PLANS.contains(&rule.name()));
    if let Some(place) = rules.iter().position(|rule| rule.name() == PUSHES_DOWN) {
        rules.insert(place, Arc::new(Plain));
    }
    rules
}

/// Conditions that compare a column with a constant are written in one way: the column first, and the constant without what is known of its type.
///
/// The query engine takes `a = 1 AND 1 = a` for a contradiction, since the two are not the same, and `a = 1 AND a = '1'`, since the one constant was an integer
/// and the other a text.
#[derive(Debug)]
struct Plain;

impl OptimizerRule for Plain {
    fn name(&self) -> &str {
        "rhumb_plain_comparisons"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(_) | LogicalPlan::Join(_) => plan.map_expressions(|expr| rewrite(expr, &mut |expr| Ok(plain(expr)))),
            other => Ok(Transformed::no(other)),
        }
    }
}

fn plain(expr: Expr) -> Transformed<Expr> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    let Expr::BinaryExpr(BinaryExpr { mut left, mut op, mut right }) = expr else { return Transformed::no(expr) };
    let is_comparison = matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom);
    let mut is_changed = false;
    if let (true, Expr::Literal(..), Some(swapped)) = (is_comparison && !matches!(*right, Expr::Literal(..)), left.as_ref(), op.swap()) {
        std::mem::swap(&mut left, &mut right);
        (op, is_changed) = (swapped, true);
    }
    for side in [&mut left, &mut right] {
        if let (true, Expr::Literal(_, ty @ Some(_))) = (is_comparison, side.as_mut()) {
            (*ty, is_changed) = (None, true);
        }
    }
    let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
    if is_changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// The rules for operators.
pub fn of_operators() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    PhysicalOptimizer::new().rules.into_iter().filter(|rule| !OF_OPERATORS.contains(&rule.name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_is_left_out_is_one_of_the_query_engine() {
        let plans: Vec<_> = Optimizer::new().rules.into_iter().map(|rule| rule.name().to_owned()).collect();
        assert!(OF_PLANS.iter().chain([&PUSHES_DOWN]).all(|name| plans.iter().any(|rule| rule == name)), "{plans:?}");
        let operators: Vec<_> = PhysicalOptimizer::new().rules.into_iter().map(|rule| rule.name().to_owned()).collect();
        assert!(OF_OPERATORS.iter().all(|name| operators.iter().any(|rule| rule == name)), "{operators:?}");
    }
}
