//! The query engine's plans of statements and expressions.

use datafusion_common::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::file_options::file_type::FileType;
use datafusion_common::{DFSchema, Result, TableReference};
use datafusion_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF};
use datafusion_sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use sqlparser::ast;
use std::sync::Arc;

/// The plan of a statement over these names.
pub fn statement(names: &dyn ContextProvider, statement: ast::Statement, context: &mut PlannerContext) -> Result<LogicalPlan> {
    planner(&Names(names)).sql_statement_to_plan_with_context(statement, context)
}

/// An expression over the columns of `schema`.
pub fn expression(names: &dyn ContextProvider, expr: ast::Expr, schema: &DFSchema, context: &mut PlannerContext) -> Result<Expr> {
    planner(&Names(names)).sql_to_expr(expr, schema, context)
}

fn planner<'a>(names: &'a Names<'a>) -> SqlToRel<'a, Names<'a>> {
    let options = ParserOptions::new()
        .with_parse_float_as_decimal(true)
        .with_enable_ident_normalization(true)
        .with_map_string_types_to_utf8view(false)
        .with_support_varchar_with_length(true);
    SqlToRel::new_with_options(names, options)
}

/// The only source of names that the planner knows.
struct Names<'a>(&'a dyn ContextProvider);

/// Passes each method on to the source within.
macro_rules! pass_on {
    ($($method:ident($($argument:ident: $given:ty),*) -> $result:ty;)+) => {
        $(fn $method(&self, $($argument: $given),*) -> $result {
            self.0.$method($($argument),*)
        })+
    };
}

impl ContextProvider for Names<'_> {
    pass_on! {
        get_table_source(name: TableReference) -> Result<Arc<dyn TableSource>>;
        get_file_type(extension: &str) -> Result<Arc<dyn FileType>>;
        get_table_function_source(name: &str, arguments: Vec<Expr>) -> Result<Arc<dyn TableSource>>;
        create_cte_work_table(name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>>;
        get_expr_planners() -> &[Arc<dyn ExprPlanner>];
        get_relation_planners() -> &[Arc<dyn RelationPlanner>];
        get_type_planner() -> Option<Arc<dyn TypePlanner>>;
        get_function_meta(name: &str) -> Option<Arc<ScalarUDF>>;
        get_higher_order_meta(name: &str) -> Option<Arc<HigherOrderUDF>>;
        get_aggregate_meta(name: &str) -> Option<Arc<AggregateUDF>>;
        get_window_meta(name: &str) -> Option<Arc<WindowUDF>>;
        get_variable_type(names: &[String]) -> Option<DataType>;
        get_variable_field(names: &[String]) -> Option<FieldRef>;
        options() -> &ConfigOptions;
        udf_names() -> Vec<String>;
        higher_order_function_names() -> Vec<String>;
        udaf_names() -> Vec<String>;
        udwf_names() -> Vec<String>;
    }
}
