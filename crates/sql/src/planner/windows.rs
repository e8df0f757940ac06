//! Windows that are defined by another: `OVER (w ORDER BY …)` and `WINDOW v AS (w …)`.
//!
//! The query engine takes such a window for one without the other's partitions. So it is given the whole definition.

use super::own;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::fold;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, Ident, NamedWindowDefinition, NamedWindowExpr, OrderBy, Select, WindowSpec, WindowType,
};
use std::collections::BTreeMap;

/// Completes the windows of a SELECT and of the ORDER BY behind it, those of its subqueries left out. Errors 42704, 42P20.
pub fn complete(select: &mut Select, order_by: Option<&mut OrderBy>) -> SqlResult<()> {
    let mut named = BTreeMap::new();
    // A definition may name those before it.
    for NamedWindowDefinition(name, definition) in &mut select.named_window {
        if let NamedWindowExpr::WindowSpec(spec) = definition {
            complete_one(spec, &named)?;
            named.insert(fold(name), spec.clone());
        }
    }
    let mut complete = |expr: &mut Expr| match expr {
        Expr::Function(Function { over: Some(WindowType::WindowSpec(spec)), .. }) => complete_one(spec, &named),
        _ => Ok(()),
    };
    own::change(&mut select.projection, &mut complete)?;
    order_by.map_or(Ok(()), |order_by| own::change(order_by, &mut complete))
}

fn complete_one(spec: &mut WindowSpec, named: &BTreeMap<String, WindowSpec>) -> SqlResult<()> {
    let Some(name) = spec.window_name.take() else { return Ok(()) };
    let base = named.get(&fold(&name)).ok_or_else(|| undefined(&name))?;
    let wrong = |text: String| Err(SqlError::new(SqlState::WindowingError, text));
    if !spec.partition_by.is_empty() {
        return wrong(format!("cannot override PARTITION BY clause of window \"{}\"", fold(&name)));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return wrong(format!("cannot override ORDER BY clause of window \"{}\"", fold(&name)));
    }
    if base.window_frame.is_some() {
        return wrong(format!("cannot copy window \"{}\" because it has a frame clause", fold(&name)));
    }
    spec.partition_by.clone_from(&base.partition_by);
    if spec.order_by.is_empty() {
        spec.order_by.clone_from(&base.order_by);
    }
    Ok(())
}

fn undefined(name: &Ident) -> SqlError {
    SqlError::new(SqlState::UndefinedObject, format!("window \"{}\" does not exist", fold(name)))
}
