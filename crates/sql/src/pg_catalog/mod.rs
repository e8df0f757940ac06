//! As much of `pg_catalog` as psql's `\dt`, `\d`, `\df` and `\l` and the drivers' look-ups of types read, and the tables of
//! this site: `rhumb.databases`, `rhumb.quotas`, and one for each protocol that shows itself. And `information_schema`, as far as tools read it.
//!
//! A statement that names a system table gets tables in memory, made for it from the descriptors, and the functions that
//! print definitions. Catalogs of things that Rhumb does not have (publications, policies …) are always empty, so a query
//! over one has no rows and is not planned at all: psql asks of them what the query engine cannot plan.

mod databases;
mod functions;
mod information;
mod maker;
mod oids;
mod plain;
mod procedures;
mod protocols;
mod quotas;
mod tables;
mod type_names;

pub use functions::{CLASS_NAME, CLASS_OID};

use crate::context::Facts;
use crate::engine::{Engine, guarded};
use crate::error::{SqlError, SqlResult};
use crate::parser::{Postgres, calls_named, fold};
use crate::txn::{Active, databases};
use datafusion::common::TableReference;
use datafusion::logical_expr::{ScalarUDF, TableSource};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, ObjectNamePart, Query, SelectItem, SetExpr, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use information::Information;
use rhumb_generic::{Part, walk_mut};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Catalogs of things that there are none of.
const EMPTY: [&str; 10] = [
    "pg_event_trigger",
    "pg_foreign_table",
    "pg_inherits",
    "pg_partitioned_table",
    "pg_policy",
    "pg_publication",
    "pg_range",
    "pg_rewrite",
    "pg_statistic_ext",
    "pg_trigger",
];

/// The tables of this site that no protocol shows, by their names without the schema `rhumb`, and what they are called once it is taken off:
/// names that no table of a database has by chance.
const OF_SITE: [(&str, &str); 2] = [("databases", DATABASES), ("quotas", QUOTAS)];
const DATABASES: &str = "rhumb.databases";
const QUOTAS: &str = "rhumb.quotas";

/// All tables of this site, by both names.
fn of_site() -> impl Iterator<Item = (&'static str, &'static str)> {
    OF_SITE.into_iter().chain(protocols::tables().map(|(_, table)| (table.name, table.qualified)))
}

/// The table that goes by `name` in the schema `rhumb`, of this site, or in `information_schema`: by that, and by what it is called without the
/// schema.
pub fn schema_table(schema: &str, name: &str) -> Option<(&'static str, &'static str)> {
    match schema {
        "rhumb" => of_site().find(|(known, _)| name == *known),
        information::SCHEMA => information::named(name),
        _ => None,
    }
}

/// What a statement over system tables may name beyond the ordinary.
#[derive(Default)]
pub struct System {
    /// The tables.
    pub tables: BTreeMap<String, Arc<dyn TableSource>>,
    /// The functions.
    pub functions: BTreeMap<String, Arc<ScalarUDF>>,
}

/// True if a query reads system tables, as far as it names them without a schema or with `pg_catalog`, or calls their functions.
pub fn reads_system_tables(query: &Query) -> bool {
    relations(query).iter().any(|name| is_system_table(name) || is_empty(name)) || calls_system_functions(query)
}

/// True if a function in it is answered by the system tables.
pub fn calls_system_functions(part: &impl Part) -> bool {
    calls_named(part, |name| functions::NAMES.contains(&name))
}

/// True for the name of a system table.
pub fn is_system_table(name: &str) -> bool {
    of_site().any(|(_, known)| name == known) || tables::NAMES.contains(&name) || information::is_one(name)
}

impl System {
    /// The system tables as the transaction sees them, and those of this site that are among the `wanted`.
    pub async fn load(engine: &Engine, facts: &Facts, active: &mut Active, wanted: &[TableReference]) -> SqlResult<System> {
        let databases = if active.catalog.lists_databases() {
            active.catalog.databases(active.txn.as_mut()).await?
        } else {
            databases(&engine.keyspaces).await?
        };
        let (user_tables, sequences) = active.catalog.tables_and_sequences(active.txn.as_mut(), &facts.database).await?;
        let procedures = active.catalog.procedures(active.txn.as_mut(), &facts.database).await?;
        let mut tables = guarded(|| tables::make(&databases, &user_tables, &sequences, &procedures, &facts.user))?;
        if wanted.iter().any(|name| information::is_one(name.table())) {
            let information = Information { facts, tables: &user_tables, sequences: &sequences, procedures: &procedures };
            guarded(|| information.make(&mut tables))?;
        }
        tables.insert(DATABASES.to_string(), guarded(|| databases::make(&databases))?);
        if wanted.iter().any(|name| name.table() == QUOTAS) {
            let infos = engine.quotas()?.list().await?;
            tables.insert(QUOTAS.to_string(), guarded(|| quotas::make(&infos))?);
        }
        for (protocol, table) in protocols::tables().filter(|(_, table)| wanted.iter().any(|name| name.table() == table.qualified)) {
            let rows = match engine.keyspaces.administration(protocol) {
                Some(administration) => administration.rows().await?,
                None => Vec::new(),
            };
            tables.insert(table.qualified.to_string(), guarded(|| protocols::make(table, &rows))?);
        }
        Ok(System { tables, functions: functions::make(&user_tables, &sequences, &procedures, &facts.user) })
    }
}

/// The query as the query engine can plan it, if it reads system tables; else the query itself.
///
/// A scalar subquery over a catalog that is always empty is NULL. Any other over system tables finds at most one row by
/// its key, which the query engine cannot know, so the maximum is taken. And a query over an empty catalog has no rows.
pub fn simplified(query: &Query) -> SqlResult<Box<Query>> {
    let mut query = Box::new(query.clone());
    if reads_system_tables(&query) {
        walk_mut(&mut query, &mut Subqueries)?;
        if relations(&query).iter().any(|name| is_empty(name)) {
            return Ok(Box::new(empty_instead(&query)));
        }
    }
    Ok(query)
}

fn is_empty(name: &str) -> bool {
    EMPTY.contains(&name)
}

/// The names of the tables that a query reads, subqueries included.
fn relations(query: &Query) -> Vec<String> {
    let last = |name: &ObjectName| name.0.last().and_then(ObjectNamePart::as_ident).map(fold);
    rhumb_generic::relations(query).iter().filter_map(last).collect()
}

struct Subqueries;

impl VisitorMut for Subqueries {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let (of, holds) = match expr {
            Expr::AnyOp { right, .. } => (right, false),
            Expr::AllOp { right, .. } => (right, true),
            _ => return ControlFlow::Continue(()),
        };
        // Of no rows, none does, and all do.
        if let Expr::Subquery(query) = of.as_ref()
            && relations(query).iter().any(|name| is_empty(name))
        {
            *expr = Expr::Value(Value::Boolean(holds).into());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Subquery(query) = expr else { return ControlFlow::Continue(()) };
        let names = relations(query);
        if names.iter().any(|name| is_empty(name) || name == "pg_collation" || name == "pg_description") {
            *expr = Expr::Value(Value::Null.into());
        } else if !names.is_empty()
            && names.iter().all(|name| is_system_table(name))
            && let SetExpr::Select(select) = query.body.as_mut()
            && let [SelectItem::UnnamedExpr(item)] = select.projection.as_mut_slice()
        {
            let parsed = Parser::new(&Postgres).try_with_sql(&format!("max({item})")).and_then(|mut parser| parser.parse_expr());
            match parsed {
                Ok(maximum) => *item = maximum,
                Err(error) => return ControlFlow::Break(SqlError::internal(error.to_string())),
            }
            select.selection = select.selection.take().and_then(without_default_flag);
        }
        ControlFlow::Continue(())
    }
}

/// A condition without `atthasdef`, which the query engine cannot move out of the subquery that it stands in. It holds
/// for just the columns that `pg_attrdef` knows, so nothing is lost.
fn without_default_flag(condition: Expr) -> Option<Expr> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => match (without_default_flag(*left), without_default_flag(*right)) {
            (Some(left), Some(right)) => Some(Expr::BinaryOp { left: left.into(), op: BinaryOperator::And, right: right.into() }),
            (left, right) => left.or(right),
        },
        Expr::CompoundIdentifier(idents) if idents.last().is_some_and(|ident| ident.value == "atthasdef") => None,
        other => Some(other),
    }
}

/// A query with the same columns and no rows.
fn empty_instead(query: &Query) -> Query {
    let mut names = Vec::new();
    column_names(&query.body, &mut names);
    let null = || Expr::Value(Value::Null.into());
    let items = names.into_iter().map(|name| SelectItem::ExprWithAlias { expr: null(), alias: Ident::with_quote('"', name) });
    let none = Expr::Value(Value::Boolean(false).into());
    crate::parser::names::select(items.collect(), Vec::new(), Some(none))
}

/// The names that a query's select list shows, as far as they can be told without planning it.
fn column_names(body: &SetExpr, names: &mut Vec<String>) {
    match body {
        SetExpr::Select(select) => names.extend(select.projection.iter().enumerate().map(|(position, item)| match item {
            SelectItem::ExprWithAlias { alias, .. } => crate::parser::fold(alias),
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => crate::parser::fold(ident),
            _ => format!("{}{position}", crate::parser::names::MARK),
        })),
        SetExpr::Query(query) => column_names(&query.body, names),
        SetExpr::SetOperation { left, .. } => column_names(left, names),
        _ => {}
    }
}
