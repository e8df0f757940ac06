//! `SET column = expression`, in UPDATE and in ON CONFLICT DO UPDATE.

use super::expression::{Compiler, Expressions, is_default};
use super::rewrite;
use crate::context::Facts;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::assignment::{Amendment, Amendments, Assignments};
use crate::parser::{self, fold};
use crate::schema::{Column, Identity, TableDescriptor};
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
    // What stands before a dot would be a column, and what follows it a field of its.
    let name = name.0.first().and_then(ast::ObjectNamePart::as_ident).map(fold).unwrap_or_default();
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
        planned.push((column, expressions.plan_assigned(value, &table.columns[column], "an assignment")?));
    }
    Ok(planned)
}

/// Assignments one by one, of `(a, b) = (1, 2)` too, and what `DEFAULT` stands for. Errors: 0A000, 42601, 42703.
pub fn written_out(assignments: &[ast::Assignment], table: &TableDescriptor, facts: &Facts) -> SqlResult<Vec<ast::Assignment>> {
    let mut each = one_by_one(assignments)?;
    for assignment in &mut each {
        let (column, value) = target(table, assignment)?;
        if is_default(value) {
            assignment.value = default_of(&table.columns[column], facts)?;
        }
    }
    Ok(each)
}

fn one_by_one(assignments: &[ast::Assignment]) -> SqlResult<Vec<ast::Assignment>> {
    let mut each = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let AssignmentTarget::Tuple(columns) = &assignment.target else {
            each.push(assignment.clone());
            continue;
        };
        let values = match &assignment.value {
            ast::Expr::Tuple(values) => values.as_slice(),
            ast::Expr::Nested(value) if columns.len() == 1 => std::slice::from_ref(&**value),
            _ => {
                return Err(SqlError::unsupported("assignment to several columns takes a row of as many expressions")
                    .with_hint("Assign to each column by itself."));
            }
        };
        if values.len() != columns.len() {
            return Err(SqlError::syntax("number of columns does not match number of values"));
        }
        let one = |(column, value): (&ast::ObjectName, &ast::Expr)| ast::Assignment {
            target: AssignmentTarget::ColumnName(column.clone()),
            value: value.clone(),
        };
        each.extend(columns.iter().zip(values).map(one));
    }
    Ok(each)
}

/// The value that a column has by itself. Error 0A000 if its sequence gives it one.
fn default_of(column: &Column, facts: &Facts) -> SqlResult<ast::Expr> {
    if column.identity.is_some() {
        return Err(SqlError::unsupported("SET column = DEFAULT is not supported where a sequence gives the column its values"));
    }
    match &column.default {
        None => Ok(ast::Expr::Value(ast::Value::Null.into())),
        Some(text) => {
            let mut default = parser::expression(text).map_err(|error| SqlError::corrupted("a default", error))?;
            rewrite::rewrite(&mut default, facts)?;
            Ok(default)
        }
    }
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
