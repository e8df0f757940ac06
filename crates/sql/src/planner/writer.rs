//! The constraints of a table that are expressions, compiled for whatever writes its rows.

use super::Planning;
use super::expression::Expressions;
use super::parameters::Parameters;
use crate::error::{SqlError, SqlResult};
use crate::executor::Writer;
use crate::executor::evaluate::Scope;
use crate::parser;
use crate::schema::TableDescriptor;
use crate::types::SqlType;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

/// The writer of `table`.
pub fn writer(cx: Planning<'_>, table: &Arc<TableDescriptor>) -> SqlResult<Writer> {
    let conditions = table.checks.iter().map(|check| {
        let mut condition = parser::expression(&check.condition).map_err(|error| SqlError::corrupted("a CHECK constraint", error))?;
        super::rewrite::rewrite(&mut condition, cx.facts)?;
        let cx = Planning { hints: &[], ..cx };
        let scope = Scope::default().with(&table.name, &table.arrow_schema());
        let mut expressions = Expressions::new(cx, scope, Parameters::of(&condition, &[])?)?;
        let planned = expressions.plan(&condition, Some(&SqlType::Bool), "check constraints")?;
        // A condition that is NULL holds.
        expressions.finish_definition()?.compile(Expr::IsNotFalse(Box::new(planned)))
    });
    Ok(Writer::new(table.clone(), conditions.collect::<SqlResult<_>>()?))
}
