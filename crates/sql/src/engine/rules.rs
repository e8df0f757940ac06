//! The rules by which the query engine improves plans and operators, but those that change results.

use datafusion::optimizer::optimizer::{Optimizer, OptimizerRule};
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

/// The rules for plans.
pub fn of_plans() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    Optimizer::new().rules.into_iter().filter(|rule| !OF_PLANS.contains(&rule.name())).collect()
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
        assert!(OF_PLANS.iter().all(|name| plans.iter().any(|rule| rule == name)), "{plans:?}");
        let operators: Vec<_> = PhysicalOptimizer::new().rules.into_iter().map(|rule| rule.name().to_owned()).collect();
        assert!(OF_OPERATORS.iter().all(|name| operators.iter().any(|rule| rule == name)), "{operators:?}");
    }
}
