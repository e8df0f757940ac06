//! The parameters of a procedure where its statements name them: `amount`, or `pay.amount` in the procedure `pay`.
//!
//! Each becomes a parameter of the statement, `$1` and so on, before that is planned; written so from the start it is left as it is.
//! As in PostgreSQL a column of the same name goes first, where there is one in sight: of a table that the statement reads or changes, or one
//! that it gives the name to itself. The `VALUES` of an INSERT see no column.

use super::Planning;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::{StatementKind, fold};
use crate::schema::{ProcedureDescriptor, ProcedureParameter};
use crate::txn::Active;
use datafusion::sql::sqlparser::ast::{self, Expr, ObjectName, ObjectNamePart, Query, Select, SelectItem, Value, Visitor, VisitorMut};
use rhumb_generic::{Part, relations, walk, walk_mut};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The statement with the parameters of `procedure` as its own.
pub async fn bind(
    cx: Planning<'_>,
    active: &mut Active,
    procedure: &ProcedureDescriptor,
    statement: &StatementKind,
) -> SqlResult<StatementKind> {
    let mut bound = statement.clone();
    match &mut bound {
        StatementKind::Query { query, .. } => bind_part(cx, active, procedure, &mut **query).await?,
        StatementKind::Insert(insert) => {
            let mut source = insert.source.take();
            bind_part(cx, active, procedure, &mut **insert).await?;
            if let Some(source) = &mut source {
                bind_part(cx, active, procedure, &mut **source).await?;
            }
            insert.source = source;
        }
        StatementKind::Update(update) => bind_part(cx, active, procedure, &mut **update).await?,
        StatementKind::Delete(delete) => bind_part(cx, active, procedure, &mut **delete).await?,
        other => return Err(SqlError::internal(format!("{} in a procedure", other.name()))),
    }
    Ok(bound)
}

async fn bind_part<P: Part>(cx: Planning<'_>, active: &mut Active, procedure: &ProcedureDescriptor, part: &mut P) -> SqlResult<()> {
    let mut columns = given_names(part);
    for table in tables(part, &cx.facts.database) {
        match active.catalog.table(active.txn.as_mut(), &cx.facts.database, &table).await {
            Ok(table) => columns.extend(table.columns.iter().map(|column| column.name.clone())),
            // A name of the statement's own, or of a system table. Whether there is such a table is for its planning to say.
            Err(error) if matches!(error.state(), SqlState::UndefinedTable | SqlState::WrongObjectType) => {}
            Err(error) => return Err(error),
        }
    }
    walk_mut(part, &mut Binder { procedure, columns })
}

/// The tables that a part of a statement names.
fn tables(part: &impl Part, database: &str) -> BTreeSet<String> {
    relations(part).iter().filter_map(|name| crate::parser::unqualified(name, database).ok()).map(|name| fold(&name)).collect()
}

/// The names that a part of a statement gives to what it computes.
fn given_names(part: &impl Part) -> BTreeSet<String> {
    struct Names(BTreeSet<String>);
    impl Visitor for Names {
        type Break = SqlError;
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
            let tables = query.with.iter().flat_map(|with| &with.cte_tables);
            self.0.extend(tables.flat_map(|table| &table.alias.columns).map(|column| fold(&column.name)));
            ControlFlow::Continue(())
        }
        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
            self.0.extend(select.projection.iter().filter_map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
                _ => None,
            }));
            ControlFlow::Continue(())
        }
        fn pre_visit_table_factor(&mut self, table: &ast::TableFactor) -> ControlFlow<SqlError> {
            if let ast::TableFactor::Table { alias: Some(alias), .. } | ast::TableFactor::Derived { alias: Some(alias), .. } = table {
                self.0.extend(alias.columns.iter().map(|column| fold(&column.name)));
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(BTreeSet::new());
    let walked = walk(part, &mut names);
    debug_assert!(walked.is_ok(), "every name is seen");
    names.0
}

struct Binder<'a> {
    procedure: &'a ProcedureDescriptor,
    columns: BTreeSet<String>,
}

impl Binder<'_> {
    fn parameter(&self, name: &str) -> Option<Expr> {
        let position = self.procedure.parameters.iter().position(|ProcedureParameter { name: known, .. }| known == name)?;
        Some(Expr::Value(Value::Placeholder(format!("${}", position + 1)).into()))
    }
}

impl VisitorMut for Binder<'_> {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let bound = match expr {
            Expr::Identifier(ident) => Some(fold(ident)).filter(|name| !self.columns.contains(name)).and_then(|name| self.parameter(&name)),
            Expr::CompoundIdentifier(idents) => match idents.as_slice() {
                [procedure, name] if fold(procedure) == self.procedure.name => self.parameter(&fold(name)),
                _ => None,
            },
            _ => None,
        };
        if let Some(bound) = bound {
            *expr = bound;
        }
        ControlFlow::Continue(())
    }
}

/// The name of a procedure without its schema and database. Error 42883.
pub fn procedure_name(name: &ObjectName, database: &str) -> SqlResult<String> {
    let named = crate::parser::unqualified(name, database).map(|name| fold(&name));
    named.map_err(|_| SqlError::new(SqlState::UndefinedFunction, format!("procedure {} does not exist", plain(name))))
}

fn plain(name: &ObjectName) -> String {
    let parts = name.0.iter().filter_map(ObjectNamePart::as_ident).map(|part| part.value.as_str());
    parts.collect::<Vec<_>>().join(".")
}
