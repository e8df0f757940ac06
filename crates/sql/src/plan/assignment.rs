//! `SET column = expression`, in UPDATE and in ON CONFLICT DO UPDATE.

use super::access::exact;
use super::evaluate::Compiled;
use super::expression::{Compiler, Expressions};
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::parser::fold;
use crate::schema::TableDescriptor;
use crate::storage::{Row, operations};
use crate::types::{Datum, coerce};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::sql::sqlparser::ast::{self, AssignmentTarget};
use rhumb_core::fields::Change;

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

/// New values that follow from the old ones without their being read: the column assigned, and how it changes.
#[derive(Debug)]
pub struct Amendments(Vec<(usize, Amendment)>);

#[derive(Debug)]
enum Amendment {
    /// To a value that has nothing to do with the row.
    Set(Compiled),
    /// By an amount that has nothing to do with the row.
    Add { amount: Compiled, negative: bool },
}

impl Amendments {
    /// Those of planned assignments; `None` if not all of them are such.
    pub fn compile(planned: &Planned, table: &TableDescriptor, compiler: &Compiler<'_>) -> SqlResult<Option<Amendments>> {
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

    /// The changes of a row's fields; `None` if a value is not one that can be set or added without a look at the row: it is to be
    /// rounded, or does not fit.
    pub fn changes(&self, engine: &Engine, table: &TableDescriptor, parameters: &[Datum]) -> SqlResult<Option<Vec<Change>>> {
        let width = table.columns.len();
        let value = |expr: &Compiled| {
            let values = expr.evaluate(engine, 1, |_, input| &parameters[input - width])?;
            SqlResult::Ok(values.into_iter().next().expect("one value for one row"))
        };
        let mut changes = Vec::with_capacity(self.0.len());
        for (column, amendment) in &self.0 {
            let change = match amendment {
                Amendment::Set(expr) => Some(operations::setting(table, *column, &assigned(table, *column, value(expr)?)?)?),
                Amendment::Add { amount, negative } => {
                    let amount = Some(value(amount)?).filter(is_exact).and_then(|amount| exact(&table.columns[*column].ty, amount));
                    amount.and_then(|amount| operations::adding(table, *column, &amount, *negative))
                }
            };
            let Some(change) = change else { return Ok(None) };
            changes.push(change);
        }
        Ok(Some(changes))
    }
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

/// True for numbers with which sums are exact.
fn is_exact(value: &Datum) -> bool {
    let exact = matches!(value, Datum::Int8(_) | Datum::Int16(_) | Datum::Int32(_) | Datum::Int64(_) | Datum::Decimal128(..));
    exact && !value.is_null()
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
