//! Plans as EXPLAIN shows them: a line each for what is done and for how its rows are found, indented by depth.

use super::access::Access;
use super::query::QueryPlan;
use super::source::TableSource;
use super::{Body, Plan, insert, modify};
use crate::engine::{Engine, guarded};
use crate::error::SqlResult;
use crate::schema::TableDescriptor;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;

impl Plan {
    /// The lines of the plan. With parameters it is shown as it would run with any values.
    pub fn lines(&self, engine: &Engine) -> SqlResult<Vec<String>> {
        match &self.body {
            Body::Singleton(_) => Ok(vec!["Result".into()]),
            Body::Select(plan) => {
                let reverse = if plan.0.reverse { ", backwards" } else { "" };
                let mut lines = vec![format!("Select from {}", plan.0.table.name)];
                lines.extend(found(&plan.0.table, &plan.0.access, plan.0.filter.is_some(), reverse));
                Ok(lines)
            }
            Body::Query(plan) => plan.lines(engine),
            Body::Insert(plan) => {
                let mut lines = vec![format!("Insert into {}", plan.writer.table.name)];
                match &plan.source {
                    insert::Source::Values(rows) => lines.push(format!("  Rows: {} given", rows.len())),
                    insert::Source::Query(query) => lines.extend(indented(query.lines(engine)?)),
                }
                Ok(lines)
            }
            Body::Modify(plan) => {
                let verb = if matches!(plan.change, modify::Change::Delete) { "Delete from" } else { "Update" };
                let mut lines = vec![format!("{verb} {}", plan.writer.table.name)];
                match &plan.rows {
                    modify::Source::Keys { access, filter } => lines.extend(found(&plan.writer.table, access, filter.is_some(), "")),
                    modify::Source::Query(query) => lines.extend(indented(query.lines(engine)?)),
                }
                Ok(lines)
            }
            Body::Call(plan) => {
                let mut lines = vec![format!("Call {}", plan.procedure.name)];
                for statement in plan.statements() {
                    lines.extend(indented(statement.lines(engine)?));
                }
                Ok(lines)
            }
            Body::SetNumbers(plan) => {
                let mut lines = vec!["Set numbers of sequences".to_owned()];
                lines.extend(indented(plan.given.lines(engine)?));
                Ok(lines)
            }
        }
    }

    /// The tables of which all rows are read although conditions leave some out, with the plan's own conditions alone.
    pub fn scanned(&self) -> Vec<String> {
        let of = |table: &TableDescriptor, access: &Access, filters: bool| {
            if filters && access.is_of_all() { vec![table.name.clone()] } else { Vec::new() }
        };
        match &self.body {
            Body::Select(plan) => of(&plan.0.table, &plan.0.access, plan.0.filter.is_some()),
            Body::Modify(plan) => match &plan.rows {
                modify::Source::Keys { access, filter } => of(&plan.writer.table, access, filter.is_some()),
                modify::Source::Query(_) => Vec::new(),
            },
            Body::Call(plan) => plan.statements().flat_map(|statement| statement.scanned()).collect(),
            Body::Query(_) | Body::Insert(_) | Body::Singleton(_) | Body::SetNumbers(_) => Vec::new(),
        }
    }
}

/// How the rows of a table are found.
fn found(table: &TableDescriptor, access: &Access, filters: bool, more: &str) -> Vec<String> {
    let mut lines = vec![format!("  Rows: {}{more}", access.describe(table))];
    if filters && !access.is_complete() {
        lines.push("  Filter: what the keys do not say".into());
    }
    lines
}

fn indented(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

impl QueryPlan {
    /// The query engine's plan, and how the rows of each of its tables are found.
    fn lines(&self, engine: &Engine) -> SqlResult<Vec<String>> {
        let plan = guarded(|| engine.planning_state().optimize(&self.plan))?;
        let mut lines: Vec<String> = plan.display_indent().to_string().lines().map(str::to_owned).collect();
        guarded(|| {
            plan.apply_with_subqueries(|node| {
                if let LogicalPlan::TableScan(scan) = node
                    && let Ok(provider) = source_as_provider(&scan.source)
                    && let Some(table) = provider.downcast_ref::<TableSource>()
                {
                    let access = Access::of(table.table(), &scan.filters);
                    lines.push(format!("{}: {}", scan.table_name, access.describe(table.table())));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(lines)
    }
}
