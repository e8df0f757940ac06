//! `SET column = expression`, in UPDATE and in ON CONFLICT DO UPDATE.

use super::expression::{Compiler, Expressions, is_default};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::assignment::{Amendment, Amendments, Assignments};
use crate::parser::fold;
use crate::schema::{Identity, TableDescriptor};
use crate::storage::operations;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::sql::sqlparser::ast::{self, AssignmentTarget};

/// The columns assigned and their new values, planned.
pub type Planned = Vec<(usize, Expr)>;

/// The column that an assignment is to and the expression of its value.
pub fn target<'a>(table: &TableDescriptor, assignment: &'a ast::Assignment) -> SqlResult<(usize, &'a ast::Expr)> {
    let AssignmentTarget::ColumnName(name) = &assignment.target else {
        return Err(SqlError::unsupported("assignment to several columns at once is not supported"));
    };
    let name = name.0.last().and_then(ast::ObjectNamePart::as_ident).map(fold).unwrap_or_default();
    let column = table.column(&name).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
        SqlError::new(SqlState::UndefinedColumn, message)
    })?;
    if table.columns[column].identity == Some(Identity::Always) && !is_default(&assignment.value) {
        let message = format!("column \"{name}\" can only be updated to DEFAULT");
        return Err(SqlError::new(SqlState::GeneratedAlways, message)
            .with_detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.")));
    }
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
        if is_default(value) {
            return Err(SqlError::unsupported("SET column = DEFAULT is not supported"));
        }
        planned.push((column, expressions.plan(value, Some(&table.columns[column].ty), "an assignment")?));
    }
    Ok(planned)
}

/// The new values that follow from the old ones without their being read; `None` if not all of them are such.
pub fn amendments(planned: &Planned, table: &TableDescriptor, compiler: &Compiler<'_>) -> SqlResult<Option<Amendments>> {
    let mut amendments = Vec::with_capacity(planned.len());
    for (column, expr) in planned {
        // Values are the same for all rows, so they must not come from a function that gives each row another.
        if !operations::stands_alone(table, *column) || expr.is_volatile() {
            return Ok(None);
        }
        let amendment = match summand(table, *column, expr) {
            Some((amount, negative)) => Amendment::Add { amount: compiler.compile(amount.clone())?, negative },
            None if !expr.any_column_refs() => Amendment::Set(compiler.compile(expr.clone())?),
            None => return Ok(None),
        };
        amendments.push((*column, amendment));
    }
    Ok(Some(Amendments(amendments)))
}

/// Compiles planned assignments.
pub fn compile(planned: Planned, compiler: &Compiler<'_>) -> SqlResult<Assignments> {
    planned.into_iter().map(|(column, expr)| Ok((column, compiler.compile(expr)?))).collect::<SqlResult<_>>().map(Assignments)
}

/// Of `n + 1`, `1 + n` and `n - 1`, where `n` is the column: the other operand, and true if it is taken away.
fn summand<'a>(table: &TableDescriptor, column: usize, expr: &'a Expr) -> Option<(&'a Expr, bool)> {
    operations::bounds(&table.columns[column].ty)?;
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(named) if table.column(&named.name) == Some(column));
    match op {
        Operator::Plus | Operator::Minus if is_column(left) && !right.any_column_refs() => Some((right, *op == Operator::Minus)),
        Operator::Plus if is_column(right) && !left.any_column_refs() => Some((left, false)),
        _ => None,
    }
}
