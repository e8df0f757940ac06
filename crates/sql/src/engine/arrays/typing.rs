//! The types of what arrays meet: an array and a value that is to be an element of it, or two arrays, have one type of elements in common, as in
//! PostgreSQL. A constant that is written as a text takes the type that the others have, and so does a parameter.

use super::functions::{OR_NULL, SUBSCRIPTS, TO_TEXT};
use super::quantified::Quantified;
use super::returned::no_array;
use crate::engine::bounded::{JOINED, TO_ARRAY};
use crate::engine::row_function::of_numbers;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, Element, SqlType, common, parse_text, several_dimensions};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::logical_expr::expr::{Cast, Placeholder, TryCast};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use std::sync::Arc;

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An array.
    List,
    /// An element of one, or to be one.
    Element,
    /// A subscript or a dimension.
    Integer,
    /// A text.
    Text,
}

/// What the arguments of a function are; `None` for a function that takes no arrays.
pub fn roles(name: &str) -> Option<&'static [Role]> {
    use Role::{Element, Integer, List, Text};
    Some(match name {
        "array_append" | "array_position" | "array_positions" | "array_remove" => &[List, Element, Integer],
        "array_prepend" => &[Element, List],
        "array_replace" => &[List, Element, Element],
        "array_cat" | "array_contains" | "array_overlaps" => &[List, List],
        "array_element" | "array_slice" => &[List, Integer, Integer],
        "array_to_string" => &[List, Text, Text],
        "array_length" | "array_upper" | "array_lower" | "array_ndims" | "cardinality" | SUBSCRIPTS | OR_NULL => &[List, Integer],
        name if Quantified::named(name).is_some() => &[Element, List],
        _ => return None,
    })
}

/// The type of an expression, of which little below it is looked at if it may be one of a long chain of operators; `None` if it has none yet.
pub fn type_of(expr: &Expr, schema: &DFSchema) -> Option<SqlType> {
    let ty = match expr {
        Expr::Column(column) => SqlType::of_field(schema.field_from_column(column).ok()?),
        Expr::Literal(value, _) => SqlType::of_arrow(&value.data_type()).filter(|_| *value != Datum::Null),
        Expr::Placeholder(Placeholder { field, .. }) => SqlType::of_field(field.as_deref()?),
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => SqlType::of_field(field),
        Expr::Alias(alias) => type_of(&alias.expr, schema),
        Expr::OuterReferenceColumn(field, _) => SqlType::of_field(field),
        Expr::ScalarSubquery(query) => SqlType::of_field(query.subquery.schema().fields().first()?),
        Expr::BinaryExpr(BinaryExpr { op, .. }) if is_condition(*op) => Some(SqlType::Bool),
        Expr::ScalarFunction(function) => match function.func.name() {
            JOINED | TO_TEXT => Some(SqlType::Text),
            "array_append" | "array_prepend" | "array_cat" | "array_remove" | "array_replace" | "array_slice" => {
                elements_of(roles(function.func.name())?, &function.args, schema).ok()?.map(SqlType::Array)
            }
            TO_ARRAY => match &function.args[..] {
                [_, Expr::Literal(oid, _), Expr::Literal(modifier, _)] => of_numbers(oid, modifier),
                _ => None,
            },
            "make_array" => {
                let elements = vec![Role::Element; function.args.len()];
                elements_of(&elements, &function.args, schema).ok()?.map(SqlType::Array).or_else(|| field_of(expr, schema))
            }
            "array_element" => type_of(function.args.first()?, schema)?.element().map(Element::ty),
            name if Quantified::named(name).is_some() => Some(SqlType::Bool),
            _ => field_of(expr, schema),
        },
        _ => field_of(expr, schema),
    };
    ty.map(|ty| ty.element().map_or(ty, SqlType::Array))
}

fn is_condition(op: Operator) -> bool {
    use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, LikeMatch, Lt, LtEq, NotEq, Or};
    matches!(op, And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom | LikeMatch)
}

fn field_of(expr: &Expr, schema: &DFSchema) -> Option<SqlType> {
    let (_, field) = expr.to_field(schema).ok()?;
    SqlType::of_field(&field).filter(|_| *field.data_type() != DataType::Null)
}

/// True for a constant that is written as a text, and for a parameter of which nothing is known.
pub fn is_unknown(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null() && *value == Datum::Null || value.try_as_str().is_some(),
        Expr::Placeholder(Placeholder { field, .. }) => field.is_none(),
        Expr::Alias(alias) => is_unknown(&alias.expr),
        _ => false,
    }
}

/// The type of an expression; `None` of a constant or a parameter that has none by itself.
pub fn told_type(expr: &Expr, schema: &DFSchema) -> Option<SqlType> {
    let is_parameter = |expr: &Expr| matches!(expr, Expr::Placeholder(_));
    if is_unknown(expr) || is_parameter(expr) { None } else { type_of(expr, schema) }
}

/// The type of the elements that arguments have in common; `None` if none of them tells. Errors: 42883, 42804.
pub fn elements_of(roles: &[Role], args: &[Expr], schema: &DFSchema) -> SqlResult<Option<Element>> {
    let mut found: Option<SqlType> = None;
    for (role, arg) in roles.iter().zip(args) {
        if matches!(role, Role::Integer | Role::Text) || is_unknown(arg) {
            continue;
        }
        let Some(ty) = type_of(arg, schema) else { continue };
        let ty = match (role, ty) {
            (Role::List, SqlType::Array(element)) => element.ty(),
            (Role::List, ty) => return Err(no_array(ty)),
            (_, SqlType::Array(_)) => return Err(several_dimensions()),
            (_, ty) => ty.unbounded(),
        };
        found = Some(match found {
            None => ty,
            Some(other) => common(&other, &ty).ok_or_else(|| {
                let message = format!("an array of {other} and a value or an array of {ty} have no type in common");
                SqlError::new(SqlState::UndefinedFunction, message).with_hint("Cast one of them.")
            })?,
        });
    }
    found.map(|ty| Element::try_from(ty).map_err(SqlError::internal)).transpose()
}

/// The arguments of which nothing is known, as the others have it; the rest stays as it is. Errors of [`elements_of`], and of a text that spells
/// no such value.
pub fn settled(roles: &[Role], args: Vec<Expr>, schema: &DFSchema) -> SqlResult<Vec<Expr>> {
    let element = elements_of(roles, &args, schema)?;
    let mut roles = roles.iter();
    let settle = |arg: Expr| {
        let ty = match (roles.next(), element) {
            (Some(Role::List), Some(element)) => SqlType::Array(element),
            (Some(Role::Element), Some(element)) => element.ty(),
            (Some(Role::Integer), _) => SqlType::Int4,
            (Some(Role::Text), _) => SqlType::Text,
            _ => return Ok(arg),
        };
        as_type(&ty.unbounded(), arg)
    };
    args.into_iter().map(settle).collect()
}

/// An expression of which nothing is known, as one of type `ty`.
pub fn as_type(ty: &SqlType, expr: Expr) -> SqlResult<Expr> {
    match expr {
        expr if !is_unknown(&expr) => Ok(expr),
        Expr::Literal(value, metadata) => match value.try_as_str() {
            Some(Some(text)) => Ok(Expr::Literal(parse_text(ty, text)?, metadata)),
            _ => Ok(Expr::Literal(ty.null(), metadata)),
        },
        Expr::Placeholder(Placeholder { id, .. }) => Ok(Expr::Placeholder(Placeholder { id, field: Some(Arc::new(ty.field("", true))) })),
        Expr::Alias(mut alias) => {
            *alias.expr = as_type(ty, *alias.expr)?;
            Ok(Expr::Alias(alias))
        }
        other => Ok(other),
    }
}
