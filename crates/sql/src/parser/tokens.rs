//! Calls of acquire() and release(): where they may stand, and what they are given.
//!
//! A call takes effect when it is evaluated, and for good. So it stands only where it is evaluated exactly once for one run of the
//! statement, and where nothing that is done with its answer can fail and hide it: alone as an item of the select list of a SELECT
//! without anything else. Anywhere else (in an expression, a cast, another function, over the rows of a table, in EXPLAIN …) it is
//! refused here, before anything is planned.

use crate::error::{SqlError, SqlResult, SqlState};
use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, SelectItem, SetExpr, TableFactor, Visitor,
};
use rhumb_generic::walk;
use rhumb_quota::operation::Action;
use std::ops::ControlFlow;

/// A call of acquire() or release().
#[derive(Clone, Debug, PartialEq)]
pub struct TokenCall {
    /// Which of the two.
    pub action: Action,
    /// The quota, the amount, and the request id if it is given.
    pub arguments: Vec<Expr>,
}

/// The call that this function call is; `None`: it calls another function. Error 42883.
pub fn token_call(function: &Function) -> SqlResult<Option<TokenCall>> {
    let Some(action) = action(&function.name) else { return Ok(None) };
    let plain = function.filter.is_none()
        && function.over.is_none()
        && function.null_treatment.is_none()
        && function.within_group.is_empty()
        && function.parameters == FunctionArguments::None;
    let arguments = match &function.args {
        FunctionArguments::List(list) if plain && list.duplicate_treatment.is_none() && list.clauses.is_empty() => list.args.as_slice(),
        _ => &[],
    };
    let values = arguments.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    });
    match values.collect::<Option<Vec<Expr>>>() {
        Some(arguments) if matches!(arguments.len(), 2 | 3) => Ok(Some(TokenCall { action, arguments })),
        _ => Err(SqlError::new(SqlState::UndefinedFunction, format!("there is no such function: {function}"))
            .with_hint("Call acquire(quota, amount) or acquire(quota, amount, request_id), and release() likewise.")),
    }
}

/// True if the statement calls them, each in its place. Errors 0A000, 42883.
pub fn check(statement: &ast::Statement) -> SqlResult<bool> {
    let Err(refused) = walk(statement, &mut Finder) else { return Ok(false) };
    let Some(items) = select_list(statement) else { return Err(refused) };
    for item in items {
        // What stands around a call, or within one.
        match call_of(item)? {
            Some(call) => walk(&call.arguments, &mut Finder)?,
            None => walk(item, &mut Finder)?,
        }
    }
    Ok(true)
}

/// The call that an item of a select list is; `None`: it is something else.
fn call_of(item: &SelectItem) -> SqlResult<Option<TokenCall>> {
    match item {
        SelectItem::UnnamedExpr(Expr::Function(function)) | SelectItem::ExprWithAlias { expr: Expr::Function(function), .. } => {
            token_call(function)
        }
        _ => Ok(None),
    }
}

fn action(name: &ObjectName) -> Option<Action> {
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(super::fold)).collect();
    match parts?.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["acquire"] | ["rhumb", "acquire"] => Some(Action::Acquire),
        ["release"] | ["rhumb", "release"] => Some(Action::Release),
        _ => None,
    }
}

/// The select list of a SELECT that is nothing else.
fn select_list(statement: &ast::Statement) -> Option<&Vec<SelectItem>> {
    let ast::Statement::Query(query) = statement else { return None };
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    if !select.from.is_empty() {
        return None;
    }
    // Whatever else the query holds shows beside a select list of one number.
    let mut bare = query.clone();
    if let SetExpr::Select(select) = bare.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(Expr::value(ast::Value::Number("1".into(), false)))];
    }
    (bare.to_string() == "SELECT 1").then_some(&select.projection)
}

/// Ends its walk at the first call.
struct Finder;

impl Visitor for Finder {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        match token_call(function) {
            Ok(Some(_)) => ControlFlow::Break(out_of_place(&function.name)),
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<SqlError> {
        match table {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } if action(name).is_some() => {
                ControlFlow::Break(out_of_place(name))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn out_of_place(name: &ObjectName) -> SqlError {
    let message = format!("{name}() cannot be called here: it takes effect at once, and once, whatever becomes of what stands around it");
    SqlError::unsupported(message)
        .with_hint(format!("Write SELECT {name}(quota, amount), without a table and with nothing around the call; go on with its answer."))
}
