//! Queries that the query engine plans and runs.

use super::parameters::Parameters;
use super::resolver::Resolver;
use super::{Planning, grouping};
use crate::engine::guarded;
use crate::engine::settling::settle_plan;
use crate::error::SqlResult;
use crate::executor::query::QueryPlan;
use crate::executor::result::{ResultColumn, column_of};
use crate::executor::source::TableSource;
use crate::executor::{Body, Plan};
use crate::parser::names::MARK;
use crate::pg_catalog::{System, calls_system_functions, is_system_table};
use crate::schema::TableDescriptor;
use crate::txn::Active;
use crate::types::several_dimensions;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, Union};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::PlannerContext;
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

/// The tables that a statement names.
pub struct Names {
    /// Those of the database.
    pub tables: Vec<Arc<TableDescriptor>>,
    /// All of them, for the planner.
    pub sources: System,
    /// True if there are system tables among them, which are made anew for each statement.
    pub once: bool,
}

/// Plans a query.
pub async fn plan(cx: Planning<'_>, active: &mut Active, mut statement: ast::Statement) -> SqlResult<Plan> {
    let Names { tables, sources, once } = names(cx, active, &statement, None).await?;
    if let ast::Statement::Query(query) = &mut statement {
        grouping::complete(query, &tables)?;
    }
    let (QueryPlan { plan }, parameters) = logical(cx, sources, statement)?;
    let at_first = plan.schema().clone();
    let plan = QueryPlan { plan: guarded(|| with_types_of_unions(plan, cx.engine.timeless_state().config_options()))? };
    let is_list = |ty: &DataType| matches!(ty, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..));
    let nests = |ty: &DataType| if let DataType::List(item) = ty { is_list(item.data_type()) } else { false };
    if plan.plan.schema().fields().iter().any(|field| nests(field.data_type())) {
        return Err(several_dimensions());
    }
    // Texts of two types are told apart by the first part alone.
    let told = |(field, first)| column_of(if Field::data_type(field) == Field::data_type(first) { first } else { field });
    let fields = |schema: &DFSchema| -> Vec<FieldRef> { schema.fields().iter().cloned().collect() };
    let (fields, first) = (fields(plan.plan.schema()), fields(&at_first));
    let columns: Vec<ResultColumn> = fields.iter().map(AsRef::as_ref).zip(first.iter().map(AsRef::as_ref)).map(told).collect();
    Ok(Plan { once, ..Plan::of(tables, parameters.finish(), Some(columns.into()), Body::Query(plan)) })
}

/// Finds the tables that a statement names; `with_hidden` shows all columns of the table of that name.
pub async fn names(cx: Planning<'_>, active: &mut Active, statement: &ast::Statement, with_hidden: Option<&str>) -> SqlResult<Names> {
    let calls = calls_system_functions(statement);
    let statement = Statement::Statement(Box::new(statement.clone()));
    let (found, _) = guarded(|| resolve_table_references(&statement, true))?;
    let once = calls || found.iter().any(|name| is_system_table(name.table()));
    let mut sources = if once { System::load(cx.engine, cx.facts, active, &found).await? } else { System::default() };
    let mut tables = Vec::new();
    for name in found.iter().filter(|name| !is_system_table(name.table()) && !name.table().starts_with(MARK)) {
        let table = active.catalog.table(active.txn.as_mut(), &cx.facts.database, name.table()).await?;
        let source = TableSource::new(table.clone(), with_hidden == Some(name.table()));
        sources.tables.insert(name.table().to_string(), provider_as_source(Arc::new(source)));
        tables.push(table);
    }
    Ok(Names { tables, sources, once })
}

/// Plans a statement over these tables. With parameters it is planned twice: once to learn their types, once with them.
pub fn logical(cx: Planning<'_>, sources: System, statement: ast::Statement) -> SqlResult<(QueryPlan, Parameters)> {
    let mut parameters = Parameters::of(&statement, cx.hints)?;
    let resolver = Resolver::new(cx.engine, sources, parameters.made_max());
    let planned = |parameters: &Parameters| {
        let mut context = PlannerContext::new().with_prepare_param_data_types(parameters.fields());
        guarded(|| rhumb_generic::statement(&resolver, statement.clone(), &mut context).and_then(settle_plan))
    };
    let mut plan = planned(&parameters)?;
    if !parameters.is_empty() {
        for (id, field) in guarded(|| plan.get_parameter_fields())? {
            if let Some(field) = field {
                parameters.learn_field(&id, &field);
            }
        }
        let types = parameters.clone().finish();
        parameters = Parameters::of(&statement, &types.into_iter().map(Some).collect::<Vec<_>>())?;
        plan = planned(&parameters)?;
    }
    Ok((QueryPlan { plan }, parameters))
}

/// The query engine says at first that the rows of a UNION have the types of its first part, and converts them later.
fn with_types_of_unions(plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
    let is_mixed = |union: &Union| {
        let types =
            |input: &Arc<LogicalPlan>| -> Vec<DataType> { input.schema().fields().iter().map(|field| field.data_type().clone()).collect() };
        let first = union.inputs.first().map(types).unwrap_or_default();
        let both = |one: &DataType, other: &DataType, is: fn(&DataType) -> bool| is(one) && is(other);
        let differs = |(one, other): (&DataType, DataType)| {
            *one != other && (both(one, &other, DataType::is_numeric) || both(one, &other, DataType::is_temporal))
        };
        union.inputs.iter().any(|input| first.iter().zip(types(input)).any(differs))
    };
    let found = plan.exists(|node| Ok(matches!(node, LogicalPlan::Union(union) if is_mixed(union))))?;
    if found { TypeCoercion::new().analyze(plan, options) } else { Ok(plan) }
}
