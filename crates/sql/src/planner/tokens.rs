//! SELECT of acquire() and release(): one row.
//!
//! Each call is an item of the select list by itself, and no other item sees its answer. So all that can fail is evaluated first: the
//! arguments of all calls, and the other items. A statement that makes no sense stops before any tokens move. Then whoever runs the
//! statement carries out the operations, each once, and puts their answers into the row, which cannot fail.

use super::expression::{Compiler, Expressions};
use super::parameters::Parameters;
use super::{Planning, rewrite};
use crate::error::{SqlError, SqlResult};
use crate::executor::evaluate::{Compiled, Scope};
use crate::executor::result::{ResultColumn, check_columns};
use crate::parser::{TokenCall, fold, names, token_call};
use crate::quota::{ARGUMENTS, Call, Item, TokensPlan};
use crate::types::SqlType;
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::{self, SelectItem, SetExpr};
use rhumb_quota::operation::{Action, OPERATIONS_MAX};

/// An item that is planned and not compiled yet.
enum Planned {
    Call(Action, Vec<Expr>),
    Value(Expr),
}

/// Plans a SELECT whose calls stand where they may. Nothing is called.
pub fn plan(cx: Planning<'_>, query: &ast::Query) -> SqlResult<TokensPlan> {
    let parameters = Parameters::of(query, cx.hints)?;
    let mut query = query.clone();
    names::name_columns(&mut query);
    let mut expressions = Expressions::new(cx, Scope::default(), parameters)?;
    let items = items(&query)?;
    check_columns(items.len())?;
    let mut planned = Vec::with_capacity(items.len());
    for (name, expr) in items {
        planned.push((name, plan_item(cx, &mut expressions, expr)?));
    }
    if planned.iter().filter(|(_, item)| matches!(item, Planned::Call(..))).count() > OPERATIONS_MAX {
        return Err(SqlError::too_large(format!("more than {OPERATIONS_MAX} quota functions in one statement")));
    }

    let compiler = expressions.finish();
    let (mut columns, mut items) = (Vec::new(), Vec::new());
    for (name, item) in planned {
        let (ty, item) = match item {
            Planned::Call(action, arguments) => {
                let arguments = arguments.into_iter().map(|argument| compiled(&compiler, argument)).collect::<SqlResult<_>>()?;
                (SqlType::Int8, Item::Call(Call { action, arguments }))
            }
            Planned::Value(expr) => {
                let (ty, expr) = compiled(&compiler, expr)?;
                (ty, Item::Value(expr))
            }
        };
        columns.push(ResultColumn { name, ty });
        items.push(item);
    }
    Ok(TokensPlan { parameters: compiler.parameters, columns: columns.into(), items })
}

/// The named expressions of the select list.
fn items(query: &ast::Query) -> SqlResult<Vec<(String, &ast::Expr)>> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Err(SqlError::internal("quota functions are planned in SELECT only")) };
    select
        .projection
        .iter()
        .map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => Ok((names::shown(&fold(alias)), expr)),
            SelectItem::UnnamedExpr(expr) => Ok((expr.to_string(), expr)),
            other => Err(SqlError::syntax(format!("SELECT {other} with no tables specified is not valid"))),
        })
        .collect()
}

fn plan_item(cx: Planning<'_>, expressions: &mut Expressions<'_>, expr: &ast::Expr) -> SqlResult<Planned> {
    let mut planned = |mut expr: ast::Expr, ty: Option<&SqlType>, place: &str| {
        rewrite::rewrite(&mut expr, cx.facts)?;
        expressions.plan(&expr, ty, place)
    };
    let call = if let ast::Expr::Function(function) = expr { token_call(function)? } else { None };
    let Some(TokenCall { action, arguments }) = call else {
        return planned(expr.clone(), None, "a select list with acquire() or release()").map(Planned::Value);
    };
    let arguments =
        arguments.into_iter().zip(ARGUMENTS).map(|(argument, (_, ty))| planned(argument, Some(&ty), "an argument of a quota function"));
    Ok(Planned::Call(action, arguments.collect::<SqlResult<_>>()?))
}

/// An expression with the type of its values.
fn compiled(compiler: &Compiler<'_>, expr: Expr) -> SqlResult<(SqlType, Compiled)> {
    Ok((compiler.type_of(&expr)?, compiler.compile(expr)?))
}
