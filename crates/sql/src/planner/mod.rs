//! From a parsed statement to something that runs: the fast path for single tables, the query engine for the rest.
//!
//! ```text
//!   statement ─ rewrite ─┬─ INSERT ─────────────────────────→ insert; its rows by query if it has a SELECT
//!                        ├─ UPDATE, DELETE ─────────────────→ modify; its rows by query if it names more tables, or asks a subquery
//!                        ├─ SELECT of the rows of one table ─→ select: no DISTINCT, groups or aggregates, in the order of a key if any
//!                        ├─ SELECT of no table ─────────────→ singleton
//!                        ├─ CALL ───────────────────────────→ call → each statement of the procedure, its parameters bound
//!                        └─ anything else ──────────────────→ query (DataFusion)
//! ```
//! `SELECT` of acquire() or release() is run by the session before it comes here, as [`plan_tokens`] plans it.
//! What is made here runs in [`executor`](crate::executor).

mod ambiguous;
mod arguments;
mod assignment;
mod call;
mod conflict;
mod conversion;
mod defaults;
mod definition;
mod expression;
mod functions;
mod given;
mod grouping;
mod insert;
mod lateral;
mod literals;
mod modify;
mod ordering;
mod own;
mod parameters;
mod patterns;
mod plainer;
mod query;
mod resolver;
mod returning;
mod rewrite;
mod rows;
mod select;
mod sequence;
mod singleton;
mod tokens;
mod using;
mod values;
mod windows;
mod writer;

pub use arguments::procedure_name;
pub use call::check as check_procedure;
pub use conversion::{Conversion, conversion};
pub use defaults::{defaults, varies_by_row};
pub use definition::{Constraint, check_table, column_definition, constraint, default_text, index_spec, procedure_spec, table_spec};
pub use given::values as values_given;
pub use sequence::{identity, identity_of, sequence_options};
pub use tokens::plan as plan_tokens;
pub use writer::{Existing, writer};

use crate::context::Facts;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::executor::result::{ResultColumn, check_columns};
use crate::executor::set_numbers::SetNumbersPlan;
use crate::executor::{Body, Plan};
use crate::parser::{StatementKind, names, set_calls};
use crate::pg_catalog;
use crate::txn::Active;
use crate::types::SqlType;
use datafusion::sql::sqlparser::ast;

/// What planning needs.
#[derive(Clone, Copy)]
pub struct Planning<'a> {
    /// The query engine.
    pub engine: &'a Engine,
    /// What the session says about itself.
    pub facts: &'a Facts,
    /// The types that the client gave to parameters.
    pub hints: &'a [Option<SqlType>],
}

/// Plans a statement that reads or writes rows, with the tables that the transaction sees. Error 54011 if the client could not
/// be told of all its columns.
pub async fn plan(cx: Planning<'_>, active: &mut Active, kind: &StatementKind) -> SqlResult<Plan> {
    let mut plan = of_any_width(cx, active, kind).await?;
    // The value is in the plan.
    plan.once |= reads_settings(kind);
    check_columns(plan.columns.as_ref().map_or(0, |columns| columns.len()))?;
    Ok(plan)
}

/// True if the statement asks for the value of a setting.
fn reads_settings(kind: &StatementKind) -> bool {
    match kind {
        StatementKind::Query { query, .. } | StatementKind::Numbers(query) => rewrite::reads_settings(query),
        StatementKind::Insert(insert) => rewrite::reads_settings(insert),
        StatementKind::Update(update) => rewrite::reads_settings(update),
        StatementKind::Delete(delete) => rewrite::reads_settings(delete),
        StatementKind::Call { arguments, .. } => arguments.iter().any(rewrite::reads_settings),
        _ => false,
    }
}

async fn of_any_width(cx: Planning<'_>, active: &mut Active, kind: &StatementKind) -> SqlResult<Plan> {
    match kind {
        StatementKind::Numbers(query) if let Some((given, names)) = set_calls(query)? => {
            let given = StatementKind::Query { query: given, for_update: false };
            let given = Box::pin(of_any_width(cx, active, &given)).await?;
            let columns = names.into_iter().map(|name| ResultColumn { name: names::shown(&name), ty: SqlType::Int8 }).collect();
            let body = SetNumbersPlan { database: cx.facts.database.clone(), given: Box::new(given) };
            let parameters = body.given.parameters.clone();
            let (once, sequences) = (body.given.once, body.given.sequences.clone());
            Ok(Plan { once, sequences, ..Plan::of(body.given.tables.clone(), parameters, Some(columns), Body::SetNumbers(body)) })
        }
        StatementKind::Query { query, .. } | StatementKind::Numbers(query) => {
            let mut query = pg_catalog::simplified(query)?;
            names::name_columns(&mut query);
            let (taken, hints) = sequence::taken(cx, active, &mut query).await?;
            let cx = Planning { hints: &hints, ..cx };
            rewrite::rewrite_query(&mut query, cx.facts)?;
            if let Some(plan) = singleton::plan(cx, &query)? {
                return Ok(taken.into_plan(plan));
            }
            if !taken.draws.is_empty() {
                return Err(sequence::out_of_place());
            }
            let plan = match select::plan(cx, active, &query).await? {
                Some(plan) => plan,
                None => query::plan(cx, active, ast::Statement::Query(query)).await?,
            };
            Ok(taken.into_plan(plan))
        }
        StatementKind::Insert(insert) => {
            let mut insert = insert.clone();
            let (taken, hints) = sequence::taken_from_values(cx, active, &mut insert).await?;
            let cx = Planning { hints: &hints, ..cx };
            rewrite::rewrite_insert(&mut insert, cx.facts)?;
            insert::plan(cx, active, *insert).await.map(|plan| taken.into_plan(plan))
        }
        StatementKind::Update(update) => {
            let mut update = update.clone();
            rewrite::rewrite(&mut update, cx.facts)?;
            modify::plan_update(cx, active, *update).await
        }
        StatementKind::Delete(delete) => {
            let mut delete = delete.clone();
            rewrite::rewrite(&mut delete, cx.facts)?;
            modify::plan_delete(cx, active, *delete).await
        }
        StatementKind::Call { name, arguments } => call::plan(cx, active, name, arguments).await,
        other => Err(SqlError::internal(format!("{} has no plan", other.name()))),
    }
}
