//! Calls of acquire() and release(): where they may stand, and what they are given.
//!
//! A call takes effect when it is evaluated, so it may stand only where it is evaluated exactly once for one run of the
//! statement: in the select list of a SELECT without anything else, alone or within arithmetic, comparisons and casts.
//! Anywhere else (in CASE, in another function, over the rows of a table, in EXPLAIN …) it is refused here, before
//! anything is planned.

use crate::error::{SqlError, SqlResult, SqlState};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator as Op, CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, SelectItem, SetExpr,
    TableFactor, Visit, Visitor,
};
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
    let ControlFlow::Break(refused) = statement.visit(&mut Finder { out_of_place: 1 }) else { return Ok(false) };
    match select_list(statement).map(|items| items.visit(&mut Finder { out_of_place: 0 })) {
        Some(ControlFlow::Continue(())) => Ok(true),
        Some(ControlFlow::Break(error)) => Err(error),
        None => Err(refused),
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

/// True if what stands in the expression is evaluated exactly once whenever the expression is.
fn evaluates_its_parts(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(_) | Expr::UnaryOp { .. } => true,
        Expr::Cast { kind, .. } => matches!(kind, CastKind::Cast | CastKind::DoubleColon),
        Expr::BinaryOp { op, .. } => matches!(
            op,
            Op::Plus
                | Op::Minus
                | Op::Multiply
                | Op::Divide
                | Op::Modulo
                | Op::StringConcat
                | Op::Eq
                | Op::NotEq
                | Op::Lt
                | Op::LtEq
                | Op::Gt
                | Op::GtEq
        ),
        _ => false,
    }
}

/// Ends its walk at the first call that stands where it may not.
struct Finder {
    /// Around the present expression, how many that a call may not stand in.
    out_of_place: usize,
}

impl Finder {
    fn call(&self, name: &ObjectName) -> ControlFlow<SqlError> {
        if self.out_of_place == 0 {
            return ControlFlow::Continue(());
        }
        let error = SqlError::unsupported(format!("{name}() cannot be called here, where it might be evaluated never or twice"));
        ControlFlow::Break(error.with_hint(format!("Write SELECT {name}(quota, amount) without a table; arithmetic may stand around it.")))
    }
}

impl Visitor for Finder {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        if let Expr::Function(function) = expr {
            match token_call(function) {
                Ok(Some(_)) => self.call(&function.name)?,
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(error),
            }
        }
        self.out_of_place += usize::from(!evaluates_its_parts(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        self.out_of_place -= usize::from(!evaluates_its_parts(expr));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<SqlError> {
        match table {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } if action(name).is_some() => {
                self.call(name)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
