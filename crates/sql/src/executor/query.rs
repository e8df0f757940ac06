//! Queries that the query engine runs.

use super::Running;
use super::result::{ResultColumn, RowStream, column_of, rows_of};
use crate::engine::arrays::typing::told_type;
use crate::engine::{Engine, from_datafusion, from_panic, guarded};
use crate::error::SqlResult;
use crate::types::{Datum, SqlType};
use datafusion::common::ParamValues;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Limit, LogicalPlan, Sort};
use datafusion::physical_plan::execute_stream;
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A query in the query engine's terms, its parameters still open.
#[derive(Debug)]
pub struct QueryPlan {
    /// As the query engine's planner made it.
    pub plan: LogicalPlan,
}

impl QueryPlan {
    /// The names and types of its columns.
    pub fn columns(&self) -> Arc<[ResultColumn]> {
        self.plan.schema().fields().iter().map(|field| column_of(field)).collect()
    }

    /// The types of its columns; `None` for one that is a constant without a type.
    pub fn told_types(&self) -> Vec<Option<SqlType>> {
        let mut plan = &self.plan;
        while let LogicalPlan::Sort(Sort { input, .. }) | LogicalPlan::Limit(Limit { input, .. }) = plan {
            plan = input;
        }
        match plan {
            LogicalPlan::Projection(projection) => projection.expr.iter().map(|expr| told_type(expr, projection.input.schema())).collect(),
            LogicalPlan::Values(values) => vec![None; values.schema.fields().len()],
            other => other.schema().fields().iter().map(|field| SqlType::of_field(field)).collect(),
        }
    }

    /// Runs it; rows are read as the stream is polled.
    pub async fn run(&self, cx: Running<'_>, columns: Arc<[ResultColumn]>) -> SqlResult<RowStream> {
        let plan = self.bind(cx.parameters)?;
        let optimized = guarded(|| cx.engine.planning_state().optimize(&plan))?;
        let state = cx.engine.state();
        let planning = state.query_planner().create_physical_plan(&optimized, &state);
        let physical = AssertUnwindSafe(planning).catch_unwind().await.map_err(|panic| from_panic(&panic))?;
        let physical = physical.map_err(|error| from_datafusion(&error))?;
        let task = task(cx.engine, cx);
        let stream = guarded(|| execute_stream(physical, task))?;
        Ok(rows_of(stream, columns, cx.engine.query_memory("rows of a batch")))
    }

    fn bind(&self, parameters: &[Datum]) -> SqlResult<LogicalPlan> {
        if parameters.is_empty() {
            return Ok(self.plan.clone());
        }
        let values = parameters.iter().map(|value| ScalarAndMetadata::from(value.clone())).collect();
        guarded(|| self.plan.clone().replace_params_with_values(&ParamValues::List(values)))
    }
}

fn task(engine: &Engine, cx: Running<'_>) -> Arc<TaskContext> {
    let state = engine.timeless_state();
    let config = state.config().clone().with_extension(Arc::new(cx.handle.clone()));
    Arc::new(TaskContext::new(
        None,
        String::new(),
        config,
        state.scalar_functions().clone(),
        state.higher_order_functions().clone(),
        state.aggregate_functions().clone(),
        state.window_functions().clone(),
        state.runtime_env().clone(),
    ))
}
