//! The types of a UNION, recursive or not: constants that are written as texts take those of the parts before them, and parts whose types do not go together are refused.

use crate::engine::arrays::typing::{as_type, is_unknown, told_type};
use crate::engine::from_sql;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{SqlType, common};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, RecursiveQuery, Union};
use std::sync::Arc;

/// The union with its constants read; `None` if there are none to be read. Errors: 42804, and those of a text that spells no such value.
pub(super) fn settled(union: &Union) -> Result<Option<LogicalPlan>> {
    let [first, others @ ..] = union.inputs.as_slice() else { return Ok(None) };
    let columns = 0..union.schema.fields().len();
    let types: Vec<Option<SqlType>> = columns.map(|column| type_of(first, column)).collect();
    let mut inputs = vec![Arc::clone(first)];
    let mut changed = false;
    for input in others {
        let read = read(input, &types).map_err(from_sql)?;
        changed |= read.is_some();
        inputs.push(read.map_or_else(|| Arc::clone(input), |projection| Arc::new(LogicalPlan::Projection(projection))));
    }
    if !changed {
        return Ok(None);
    }
    Union::try_new_with_loose_types(inputs).map(|union| Some(LogicalPlan::Union(union)))
}

/// The type of a column; `None` of a constant that has none by itself.
fn type_of(plan: &LogicalPlan, column: usize) -> Option<SqlType> {
    match plan {
        LogicalPlan::Projection(projection) => told_type(&projection.expr[column], projection.input.schema()),
        other => SqlType::of_field(other.schema().field(column)),
    }
}

/// A part with its constants as `types` has them.
fn read(part: &LogicalPlan, types: &[Option<SqlType>]) -> SqlResult<Option<Projection>> {
    let mut exprs = if let LogicalPlan::Projection(projection) = part { projection.expr.clone() } else { Vec::new() };
    let mut changed = false;
    for (column, ty) in types.iter().enumerate() {
        let Some(ty) = ty.filter(|ty| ty.element().is_none()) else { continue };
        match type_of(part, column) {
            None => {
                if let Some(expr) = exprs.get_mut(column).filter(|expr| is_unknown(expr) && !ty.is_text()) {
                    *expr = as_type(&ty.unbounded(), expr.clone())?;
                    changed = true;
                }
            }
            Some(other) if other.element().is_none() && common(&ty, &other).is_none() => {
                let message = format!("UNION types {} and {} cannot be matched", ty.name(), other.name());
                return Err(SqlError::new(SqlState::DatatypeMismatch, message));
            }
            Some(_) => {}
        }
    }
    match part {
        LogicalPlan::Projection(projection) if changed => {
            let read = Projection::try_new(exprs, Arc::clone(&projection.input));
            read.map(Some).map_err(|error| SqlError::internal(error.to_string()))
        }
        _ => Ok(None),
    }
}

/// A recursive query whose second part has what the first says of the types of its columns; `None` if it has that already.
pub(super) fn with_types_of_first(query: &RecursiveQuery) -> Result<Option<LogicalPlan>> {
    let (first, second) = (query.static_term.schema(), query.recursive_term.schema());
    let differs = first.fields().iter().zip(second.fields()).any(|(one, other)| one.metadata() != other.metadata());
    if !differs {
        return Ok(None);
    }
    let told = |(place, field): (usize, &FieldRef)| {
        let column = Expr::Column(Column::from(second.qualified_field(place)));
        column.alias_with_metadata(field.name(), Some(FieldMetadata::from(field.as_ref())))
    };
    let exprs = first.fields().iter().enumerate().map(told).collect();
    let second = LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(&query.recursive_term))?);
    let (name, first) = (query.name.clone(), Arc::clone(&query.static_term));
    RecursiveQuery::try_new(name, first, Arc::new(second), query.is_distinct).map(|query| Some(LogicalPlan::RecursiveQuery(query)))
}
