//! `VALUES` of several rows: a column has the type that its values have in common, as in PostgreSQL. To the query engine a value that has a type by itself and
//! one that has none are of different types, and it refuses them.

use super::expression::holds_query;
use super::literals;
use crate::parser;
use crate::parser::names::select;
use crate::types::{SqlType, common};
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Ident, Parens, SelectItem, SetExpr, SetOperator, SetQuantifier, TypedString, UnaryOperator, Value, Values,
};

/// The rows of a `VALUES` with subqueries in it.
const QUERIES_MAX: usize = 100;

/// Casts the values of each column in which one is written with its type to what they have in common. A column of which that cannot be told here stays as it is.
pub fn unify(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    if values.rows.len() < 2 || values.rows.iter().any(|row| row.content.len() != width) {
        return;
    }
    for column in 0..width {
        let cells: Vec<&Expr> = values.rows.iter().map(|row| &row.content[column]).collect();
        let Some(data_type) = in_common(&cells) else {
            // Some of them have no type by themselves, so none may.
            values.rows.iter_mut().for_each(|row| literals::keep(&mut row.content[column]));
            continue;
        };
        for row in &mut values.rows {
            let expr = Box::new(row.content[column].clone());
            row.content[column] =
                Expr::Cast { kind: CastKind::DoubleColon, expr, data_type: data_type.clone(), array: false, format: None };
        }
    }
}

/// Rows of which one holds a subquery, as queries of one row each: the query engine knows none in `VALUES`.
pub fn as_queries(values: &Values) -> Option<SetExpr> {
    let rows = &values.rows;
    if rows.len() > QUERIES_MAX || !rows.iter().flat_map(|row| row.content.iter()).any(holds_query) {
        return None;
    }
    let row = |(number, row): (usize, &Parens<Vec<Expr>>)| {
        let named = |(place, expr): (usize, &Expr)| match number {
            0 => SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::new(format!("column{}", place + 1)) },
            _ => SelectItem::UnnamedExpr(expr.clone()),
        };
        *select(row.content.iter().enumerate().map(named).collect(), Vec::new(), None).body
    };
    let (op, set_quantifier) = (SetOperator::Union, SetQuantifier::All);
    let both = |left, right| SetExpr::SetOperation { op, set_quantifier, left: Box::new(left), right: Box::new(right) };
    rows.iter().enumerate().map(row).reduce(both)
}

/// What is known of the type of a value.
enum Told<'a> {
    /// It is written with it.
    As(SqlType, &'a DataType),
    /// A number or a truth value has it.
    Has(SqlType),
    /// It takes that of the others.
    Nothing,
}

fn in_common(cells: &[&Expr]) -> Option<DataType> {
    let told = cells.iter().map(|cell| told(cell)).collect::<Option<Vec<Told<'_>>>>()?;
    let types = || {
        told.iter().filter_map(|told| match told {
            Told::As(ty, _) | Told::Has(ty) => Some(*ty),
            Told::Nothing => None,
        })
    };
    let first = types().next()?;
    let is_written = told.iter().any(|told| matches!(told, Told::As(..)));
    if !is_written && types().any(|ty| ty != SqlType::Int4) {
        return None;
    }
    let ty = if types().all(|ty| ty == first) { first } else { types().try_fold(first, |one, other| common(&one, &other))? };
    let mut written = told.iter().filter_map(|told| if let Told::As(ty, data_type) = told { Some((*ty, *data_type)) } else { None });
    match written.next() {
        Some((known, data_type)) if known == ty => Some(data_type.clone()),
        _ => parser::data_type(&ty.to_string()).ok(),
    }
}

fn told(expr: &Expr) -> Option<Told<'_>> {
    let written = |data_type| {
        let ty = SqlType::from_ast(data_type).ok()?;
        ty.element().is_none().then_some(Told::As(ty, data_type))
    };
    match expr {
        Expr::Nested(expr) => told(expr),
        Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => written(data_type),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => told(expr),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => Some(Told::Has(of_number(number))),
            Value::Boolean(_) => Some(Told::Has(SqlType::Bool)),
            Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::Null => Some(Told::Nothing),
            _ => None,
        },
        _ => None,
    }
}

/// The smallest type of PostgreSQL that holds a number.
fn of_number(number: &str) -> SqlType {
    match number.parse::<i64>() {
        Ok(number) if i32::try_from(number).is_ok() => SqlType::Int4,
        Ok(_) => SqlType::Int8,
        Err(_) => SqlType::Numeric(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::expression;

    #[test]
    fn values_have_the_type_in_common_of_which_one_is_written() {
        for (written, expected) in [
            (&["1::smallint", "2"][..], Some("INTEGER")),
            (&["0.1::float8", "0.2", "NULL"], Some("FLOAT8")),
            (&["'2024-01-01'::date", "'2024-01-02'"], Some("DATE")),
            (&["1::int", "2.5::numeric(5,2)"], Some("NUMERIC")),
            (&["'a'::varchar(3)", "'b'::varchar(3)"], Some("VARCHAR(3)")),
            (&["1", "2.5"], None),
            (&["1", "'2'", "NULL"], Some("INTEGER")),
            (&["5000000000", "2"], None),
            (&["1.5", "NULL"], None),
            (&["1::int", "'x'::text"], None),
            (&["1::int", "random()"], None),
        ] {
            let exprs: Vec<Expr> = written.iter().map(|text| expression(text).expect("an expression")).collect();
            let found = in_common(&exprs.iter().collect::<Vec<_>>());
            assert_eq!(found.map(|ty| ty.to_string()).as_deref(), expected, "{written:?}");
        }
    }
}
