//! The names that the query engine's planner may meet: the tables of one statement, functions, types.

use crate::engine::{Engine, bounded, settling};
use crate::error::{SqlError, SqlState};
use crate::parser::names::MARK;
use crate::pg_catalog::System;
use crate::types::SqlType;
use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::catalog::TableFunctionArgs;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, DataFusionError, Result, TableReference};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

/// The tables of one statement, with the functions of the engine.
pub struct Resolver<'a> {
    state: &'a SessionState,
    names: System,
    planners: Vec<Arc<dyn ExprPlanner>>,
    made_max: u64,
}

impl<'a> Resolver<'a> {
    /// A resolver of these tables and functions beside the engine's own, each of which may make `made_max` bytes of one batch of rows.
    pub fn new(engine: &'a Engine, names: System, made_max: u64) -> Resolver<'a> {
        let state = engine.timeless_state();
        let mut planners: Vec<Arc<dyn ExprPlanner>> =
            vec![Arc::new(settling::Planner { bytes_max: made_max }), Arc::new(bounded::Planner { bytes_max: made_max })];
        planners.extend(state.expr_planners().iter().cloned());
        Resolver { state, names, planners, made_max }
    }
}

impl ContextProvider for Resolver<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let undefined = || DataFusionError::External(Box::new(SqlError::undefined_table(name.table())));
        self.names.tables.get(name.table()).cloned().ok_or_else(undefined)
    }

    fn get_table_function_source(&self, name: &str, arguments: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        let name = name.trim_start_matches(MARK);
        let undefined = || SqlError::new(SqlState::UndefinedFunction, format!("there is no function {name} that returns rows"));
        let function = self.state.table_functions().get(name).ok_or_else(|| DataFusionError::External(Box::new(undefined())))?;
        let (simplifier, schema) = (ExprSimplifier::new(SimplifyContext::default()), DFSchema::empty());
        let constant = |argument| simplifier.coerce(argument, &schema).and_then(|argument| simplifier.simplify(argument));
        let arguments = arguments.into_iter().map(constant).collect::<Result<Vec<_>>>()?;
        function.create_table_provider_with_args(TableFunctionArgs::new(&arguments, self.state)).map(provider_as_source)
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(SqlTypes))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let known = || self.state.scalar_functions().get(name).map(|function| bounded::bounded(function, self.made_max));
        self.names.functions.get(name).cloned().or_else(known)
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}

/// The types that a CAST may name are those of columns.
#[derive(Debug)]
struct SqlTypes;

impl TypePlanner for SqlTypes {
    fn plan_type_field(&self, ty: &ast::DataType) -> Result<Option<FieldRef>> {
        match SqlType::from_ast(ty) {
            Ok(ty) => Ok(Some(Arc::new(ty.field("", true)))),
            Err(error) => Err(DataFusionError::External(Box::new(error))),
        }
    }
}
