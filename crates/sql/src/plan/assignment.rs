//! `SET column = expression`, in UPDATE and in ON CONFLICT DO UPDATE.

use super::evaluate::Compiled;
use super::expression::{Compiler, Expressions};
use crate::catalog::TableDescriptor;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::parse::fold;
use crate::table::Row;
use crate::types::{Datum, coerce};
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::{self, AssignmentTarget};

/// The columns assigned and their new values, planned.
pub type Planned = Vec<(usize, Expr)>;

/// The assignments of a statement.
#[derive(Debug)]
pub struct Assignments(Vec<(usize, Compiled)>);

/// The column that an assignment is to and the expression of its value.
pub fn target<'a>(table: &TableDescriptor, assignment: &'a ast::Assignment) -> SqlResult<(usize, &'a ast::Expr)> {
    let AssignmentTarget::ColumnName(name) = &assignment.target else {
        return Err(SqlError::unsupported("assignment to several columns at once is not supported"));
    };
    let name = name.0.last().and_then(ast::ObjectNamePart::as_ident).map(fold).unwrap_or_default();
    let column = table.column(&name).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
        SqlError::new(crate::error::SqlState::UndefinedColumn, message)
    })?;
    Ok((column, &assignment.value))
}

/// Plans assignments to columns of `table`.
pub fn plan(expressions: &mut Expressions<'_>, table: &TableDescriptor, assignments: &[ast::Assignment]) -> SqlResult<Planned> {
    let mut planned: Planned = Vec::new();
    for assignment in assignments {
        let (column, value) = target(table, assignment)?;
        if planned.iter().any(|(assigned, _)| *assigned == column) {
            let message = format!("multiple assignments to same column \"{}\"", table.columns[column].name);
            return Err(SqlError::syntax(message));
        }
        if super::insert::is_default(value) {
            return Err(SqlError::unsupported("SET column = DEFAULT is not supported"));
        }
        planned.push((column, expressions.plan(value, Some(&table.columns[column].ty), "an assignment")?));
    }
    Ok(planned)
}

impl Assignments {
    /// Compiles planned assignments.
    pub fn compile(planned: Planned, compiler: &Compiler<'_>) -> SqlResult<Assignments> {
        planned.into_iter().map(|(column, expr)| Ok((column, compiler.compile(expr)?))).collect::<SqlResult<_>>().map(Assignments)
    }

    /// The rows that `rows` become; `input(row, position)` is the value of an input of the expressions' scope.
    pub fn apply<'a>(
        &self,
        engine: &Engine,
        table: &TableDescriptor,
        rows: &[Row],
        input: impl Fn(usize, usize) -> &'a Datum + Copy,
    ) -> SqlResult<Vec<Row>> {
        let mut changed = rows.to_vec();
        for (column, value) in &self.0 {
            let values = value.evaluate(engine, rows.len(), input)?;
            for (row, value) in changed.iter_mut().zip(values) {
                row[*column] = assigned(table, *column, value)?;
            }
        }
        Ok(changed)
    }
}

/// A value as the column stores it.
pub fn assigned(table: &TableDescriptor, column: usize, value: Datum) -> SqlResult<Datum> {
    let definition = &table.columns[column];
    let value = coerce(&definition.ty, value)?;
    if value.is_null() && !definition.nullable {
        return Err(SqlError::not_null(&table.name, &definition.name));
    }
    Ok(value)
}
