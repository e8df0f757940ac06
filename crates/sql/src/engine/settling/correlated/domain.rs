//! The rows of a subquery for all that it may be asked with.

use super::references::{references, refers, with_references};
use super::unsupported;
use crate::engine::tree::{rewrite, window_of};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, JoinType, NullEquality, Result};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::logical_plan::{Aggregate, FetchType, Join, Limit, SkipType, Window};
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Operator, SortExpr, WindowFrame, WindowFunctionDefinition, lit, when,
};
use std::sync::Arc;

/// The column of a row's place among those of one row of the domain.
const PLACE: &str = "rhumb_place";

/// What makes columns of the subqueries of a node that have become hard; `None` for a node without such.
pub type Settle = fn(&LogicalPlan) -> Result<Option<LogicalPlan>>;

/// What the subquery may be asked with.
pub struct Domain {
    /// Its rows, each once.
    rows: LogicalPlan,
    /// The name of the table that its columns are of.
    table: String,
    /// The columns around the subquery that it refers to, in the order of its own.
    pub references: Vec<Column>,
    settle: Settle,
}

impl Domain {
    /// That of a plan `within` which refers to the rows `around` it. Error 0A000.
    pub fn new(around: &LogicalPlan, within: &LogicalPlan, settle: Settle) -> Result<Domain> {
        let mut references = references(within);
        references.retain(|column| around.schema().has_column(column));
        if around.exists(|node| Ok(node.expressions().iter().any(Expr::is_volatile)))? {
            return Err(unsupported("a subquery that refers to rows around it that are not the same each time they are read"));
        }
        // Its value is one for all rows that are alike, and would be another for each.
        if within.exists(|node| Ok(node.expressions().iter().any(Expr::is_volatile)))? {
            return Err(unsupported("random() and the like in a subquery that refers to the rows around it"));
        }
        let is_taken = |table: &str| {
            let has = |plan: &LogicalPlan| plan.schema().iter().any(|(of, _)| of.is_some_and(|of| of.table() == table));
            let mut found = has(around);
            within.apply_with_subqueries(|plan| {
                found |= has(plan);
                Ok(TreeNodeRecursion::Continue)
            })?;
            Ok::<bool, DataFusionError>(found)
        };
        let mut depth = 0;
        let table = loop {
            let table = format!("rhumb_around_{depth}");
            if !is_taken(&table)? {
                break table;
            }
            depth += 1;
        };
        let columns = references.iter().enumerate().map(|(place, column)| Expr::Column(column.clone()).alias(key(&table, place)));
        let rows = LogicalPlanBuilder::from(around.clone()).project(columns)?.distinct()?.alias(table.as_str())?.build()?;
        Ok(Domain { rows, table, references, settle })
    }

    fn key(&self, place: usize) -> Column {
        Column::new(Some(self.table.as_str()), key(&self.table, place))
    }

    /// Its columns.
    pub fn keys(&self) -> Vec<Column> {
        (0..self.references.len()).map(|place| self.key(place)).collect()
    }

    /// The same columns as another table has them.
    fn keys_of(&self, table: &str) -> Vec<Column> {
        (0..self.references.len()).map(|place| Column::new(Some(table), key(&self.table, place))).collect()
    }

    fn key_exprs(&self) -> Vec<Expr> {
        self.keys().into_iter().map(Expr::Column).collect()
    }

    /// An expression of `node` with the domain's columns in the place of those around the subquery.
    fn within(&self, expr: Expr, node: &LogicalPlan) -> Result<Expr> {
        let key_of = |column: &Column| self.references.iter().position(|reference| reference == column).map(|place| self.key(place));
        let changed = rewrite(expr, &mut |expr| match expr {
            Expr::OuterReferenceColumn(field, column) => Ok(match key_of(&column) {
                Some(key) => Transformed::yes(Expr::Column(key)),
                None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
            }),
            other => with_references(other, node, &key_of),
        })?;
        Ok(changed.data)
    }

    fn all_within(&self, exprs: &[Expr], node: &LogicalPlan) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.within(expr.clone(), node)).collect()
    }

    /// The rows of a plan for each row of the domain. Error 0A000.
    pub fn over(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        if !refers(plan) {
            return LogicalPlanBuilder::from(self.rows.clone()).cross_join(plan.clone())?.build();
        }
        match plan {
            LogicalPlan::Projection(projection) => {
                let items = self.all_within(&projection.expr, plan)?;
                let input = self.over(&projection.input)?;
                let named = items.into_iter().zip(plan.schema().iter());
                let named = named.map(|(item, (table, field))| match item.qualified_name() {
                    (of, name) if of.as_ref() == table && name == *field.name() => item,
                    _ => item.alias_qualified(table.cloned(), field.name()),
                });
                let made = LogicalPlanBuilder::from(input).project(self.key_exprs().into_iter().chain(named))?.build()?;
                self.settled(made)
            }
            LogicalPlan::Filter(filter) => {
                let predicate = self.within(filter.predicate.clone(), plan)?;
                let made = LogicalPlanBuilder::from(self.over(&filter.input)?).filter(predicate)?.build()?;
                self.settled(made)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.over(&alias.input)?;
                self.named(input, plan.schema())
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(plan, aggregate),
            LogicalPlan::Limit(limit) => self.limit(plan, limit),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                let by = self.sort_keys(&sort.expr, plan)?;
                LogicalPlanBuilder::from(self.over(&sort.input)?).sort(by)?.build()
            }
            LogicalPlan::Distinct(Distinct::All(input)) => LogicalPlanBuilder::from(self.over(input)?).distinct()?.build(),
            LogicalPlan::Window(window) => {
                let mut calls = self.all_within(&window.window_expr, plan)?;
                for call in &mut calls {
                    if let Some(function) = window_of(call) {
                        function.params.partition_by.extend(self.key_exprs());
                    }
                }
                let made = LogicalPlan::Window(Window::try_new(calls, Arc::new(self.over(&window.input)?))?);
                self.named(made, plan.schema())
            }
            LogicalPlan::Join(join) => self.join(plan, join),
            other => Err(unsupported(&format!("a subquery that refers to the rows around it below {}", name_of(other)))),
        }
    }

    /// A node of one input whose own subqueries have been asked with the domain: they may have become hard.
    fn settled(&self, made: LogicalPlan) -> Result<LogicalPlan> {
        Ok((self.settle)(&made)?.unwrap_or(made))
    }

    fn sort_keys(&self, keys: &[SortExpr], node: &LogicalPlan) -> Result<Vec<SortExpr>> {
        keys.iter().map(|key| Ok(SortExpr { expr: self.within(key.expr.clone(), node)?, ..*key })).collect()
    }

    /// The columns of the domain, and the others as `schema` names them.
    pub fn named(&self, made: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
        let others = made.schema().columns().into_iter().skip(self.references.len()).zip(schema.iter());
        let others = others.map(|(column, (table, field))| Expr::Column(column).alias_qualified(table.cloned(), field.name()));
        let columns: Vec<Expr> = self.key_exprs().into_iter().chain(others).collect();
        LogicalPlanBuilder::from(made).project(columns)?.build()
    }

    fn aggregate(&self, plan: &LogicalPlan, aggregate: &Aggregate) -> Result<LogicalPlan> {
        let group = self.all_within(&aggregate.group_expr, plan)?;
        if group.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return Err(unsupported("a subquery with GROUPING SETS, ROLLUP or CUBE that refers to the rows around it"));
        }
        let calls = self.all_within(&aggregate.aggr_expr, plan)?;
        let by = self.key_exprs().into_iter().chain(group).collect();
        let made = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(self.over(&aggregate.input)?), by, calls)?);
        let made = self.named(made, plan.schema())?;
        if !aggregate.group_expr.is_empty() {
            return Ok(made);
        }
        // An aggregate of no rows has a value, too.
        let found = made.schema().columns().into_iter().map(Expr::Column).chain([lit(true).alias(self.found())]);
        let found = LogicalPlanBuilder::from(made.clone()).project(found)?;
        let other = format!("{}_values", self.table);
        let renamed = made.schema().columns().into_iter().enumerate().map(|(place, column)| {
            let name = if place < self.references.len() { key(&self.table, place) } else { self.value(place - self.references.len()) };
            Expr::Column(column).alias(name)
        });
        let found = found.project(renamed.chain([Expr::Column(Column::new_unqualified(self.found()))]))?.alias(other.as_str())?.build()?;
        let all = LogicalPlanBuilder::from(self.rows.clone()).join_detailed(
            found,
            JoinType::Left,
            (self.keys(), self.keys_of(&other)),
            None,
            NullEquality::NullEqualsNull,
        )?;
        let mut columns = self.key_exprs();
        for (place, (call, (table, field))) in aggregate.aggr_expr.iter().zip(plan.schema().iter()).enumerate() {
            let value = Expr::Column(Column::new(Some(other.as_str()), self.value(place)));
            let value = match call.clone().unalias() {
                Expr::AggregateFunction(AggregateFunction { func, .. }) => {
                    let of_none = func.default_value(field.data_type())?;
                    let is_none = Expr::Column(Column::new(Some(other.as_str()), self.found())).is_null();
                    if of_none.is_null() { value } else { when(is_none, lit(of_none)).otherwise(value)? }
                }
                _ => value,
            };
            columns.push(value.alias_qualified(table.cloned(), field.name()));
        }
        all.project(columns)?.build()
    }

    fn value(&self, place: usize) -> String {
        format!("{}_value_{place}", self.table)
    }

    /// The column that tells a value from none.
    fn found(&self) -> String {
        format!("{}_found", self.table)
    }

    /// The first rows of each row of the domain.
    fn limit(&self, plan: &LogicalPlan, limit: &Limit) -> Result<LogicalPlan> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (limit.get_skip_type()?, limit.get_fetch_type()?) else {
            return Err(unsupported("LIMIT and OFFSET of an expression in a subquery that refers to the rows around it"));
        };
        // What only computes columns of rows that have an order leaves them in it.
        if let LogicalPlan::Projection(projection) = limit.input.as_ref()
            && matches!(projection.input.as_ref(), LogicalPlan::Sort(_))
        {
            let below = LogicalPlan::Limit(Limit { input: projection.input.clone(), ..limit.clone() });
            return self.over(&LogicalPlanBuilder::from(below).project(projection.expr.clone())?.build()?);
        }
        let (by, input) = match limit.input.as_ref() {
            sorted @ LogicalPlan::Sort(sort) if sort.fetch.is_none() => (self.sort_keys(&sort.expr, sorted)?, &sort.input),
            _ => (Vec::new(), &limit.input),
        };
        let mut number = WindowFunction::new(WindowFunctionDefinition::WindowUDF(row_number_udwf()), Vec::new());
        number.params.partition_by = self.key_exprs();
        number.params.window_frame = WindowFrame::new((!by.is_empty()).then_some(false));
        number.params.order_by = by;
        let number = Expr::WindowFunction(Box::new(number)).alias(PLACE);
        let place = Expr::Column(Column::new_unqualified(PLACE));
        let last = fetch.map(|fetch| place.clone().lt_eq(lit((skip + fetch) as u64)));
        let wanted = last.into_iter().fold(place.gt(lit(skip as u64)), Expr::and);
        let numbered = LogicalPlanBuilder::from(self.over(input)?).window([number])?.build()?;
        let made = LogicalPlanBuilder::from(self.settled(numbered)?).filter(wanted)?.build()?;
        self.named(made, plan.schema())
    }

    /// A join of which one side is asked with the domain, or both: then with the same row of it.
    fn join(&self, plan: &LogicalPlan, join: &Join) -> Result<LogicalPlan> {
        use JoinType::{Inner, Left, LeftAnti, LeftSemi, Right};
        let (left, right) = (refers(&join.left), refers(&join.right));
        let (left, right) = match join.join_type {
            Inner if right => (left, true),
            Inner | Left | LeftSemi | LeftAnti => (true, right),
            Right => (left, true),
            other => return Err(unsupported(&format!("{other} JOIN in a subquery that refers to the rows around it"))),
        };
        let pairs = join.on.iter().map(|(one, other)| Ok((self.within(one.clone(), plan)?, self.within(other.clone(), plan)?)));
        let mut on = pairs.collect::<Result<Vec<_>>>()?;
        let mut filter = join.filter.clone().map(|filter| self.within(filter, plan)).transpose()?;
        let left = if left { Arc::new(self.over(&join.left)?) } else { join.left.clone() };
        let mut keys = self.key_exprs();
        let right = match right {
            false => join.right.clone(),
            true if !refers(&join.left) && matches!(join.join_type, Inner | Right) => Arc::new(self.over(&join.right)?),
            true => {
                let made = self.over(&join.right)?;
                let table = format!("{}_right", self.table);
                let columns = made.schema().columns().into_iter().enumerate().map(|(place, column)| match self.references.get(place) {
                    Some(_) => Expr::Column(column).alias_qualified(Some(table.as_str()), key(&self.table, place)),
                    None => Expr::Column(column),
                });
                let others: Vec<Expr> = self.keys_of(&table).into_iter().map(Expr::Column).collect();
                let columns: Vec<Expr> = columns.collect();
                let same = self.key_exprs().into_iter().zip(others.iter().cloned());
                if join.null_equality == NullEquality::NullEqualsNull {
                    on.extend(same);
                } else {
                    let same = same
                        .map(|(one, other)| Expr::BinaryExpr(BinaryExpr::new(Box::new(one), Operator::IsNotDistinctFrom, Box::new(other))));
                    filter = filter.into_iter().chain(same).reduce(Expr::and);
                }
                if join.join_type == Right {
                    keys = others;
                }
                Arc::new(LogicalPlanBuilder::from(made).project(columns)?.build()?)
            }
        };
        let made = LogicalPlan::Join(Join { left, right, on, filter, ..join.clone() }).recompute_schema()?;
        let keys = keys.into_iter().zip(self.keys()).map(|(from, to)| from.alias_qualified(to.relation, to.name));
        let columns: Vec<Expr> = keys.chain(plan.schema().columns().into_iter().map(Expr::Column)).collect();
        LogicalPlanBuilder::from(made).project(columns)?.build()
    }
}

/// The names are unlike those of any other domain, so that none is read for another where the table is left out.
fn key(table: &str, place: usize) -> String {
    format!("{table}_key_{place}")
}

fn name_of(plan: &LogicalPlan) -> &'static str {
    match plan {
        LogicalPlan::Union(_) => "UNION",
        LogicalPlan::Unnest(_) => "unnest()",
        LogicalPlan::RecursiveQuery(_) => "WITH RECURSIVE",
        LogicalPlan::Subquery(_) => "LATERAL",
        _ => "an operation of another kind",
    }
}
