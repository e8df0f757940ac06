//! CALL of a procedure: what it is given, and its statements, each planned as it would be alone.
//!
//! The statements share one transaction. Where the commit carries out [operations](crate::executor::operations), all of them travel together: the
//! call is a one-shot transaction then, or it is refused. What they would show nobody sees.

use super::given::Given;
use super::{Planning, arguments};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::call::{CallPlan, Statement, unfit_statement};
use crate::executor::evaluate::Compiled;
use crate::executor::{Body, Plan};
use crate::parser;
use crate::schema::{ProcedureDescriptor, signature};
use crate::txn::Active;
use crate::types::{SqlType, converts};
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, ObjectName, Value};
use std::sync::Arc;

/// Plans a CALL. Errors 42883; what its statements are refused for, should their tables be others than they were made for.
pub async fn plan(cx: Planning<'_>, active: &mut Active, name: &ObjectName, given: &[SqlExpr]) -> SqlResult<Plan> {
    let name = arguments::procedure_name(name, &cx.facts.database)?;
    let procedure = active.catalog.procedure(active.txn.as_mut(), &cx.facts.database, &name).await?;
    let wanted: Vec<SqlType> = procedure.iter().flat_map(|procedure| procedure.types()).map(SqlType::unbounded).collect();
    let (parameters, given) = plan_given(cx, &name, procedure.is_some().then_some(&wanted), given)?;
    let procedure = procedure.expect("else what it is given does not fit");
    let statements = plan_body(cx, active, &procedure).await?;
    let (mut tables, mut sequences, mut once) = (Vec::new(), Vec::new(), false);
    for Statement { plan, .. } in &statements {
        tables.extend(plan.tables.iter().cloned());
        sequences.extend(plan.sequences.iter().cloned());
        once |= plan.once;
    }
    let body = Body::Call(CallPlan { procedure, given, statements });
    Ok(Plan { sequences, once, ..Plan::of(tables, parameters, None, body) })
}

/// Plans the statements of a procedure, to see whether they make sense. In a database whose commits carry
/// out operations, of the protocol `one_shot`, the first that cannot become such is refused.
pub async fn check(cx: Planning<'_>, active: &mut Active, procedure: &ProcedureDescriptor, one_shot: Option<&str>) -> SqlResult<()> {
    for (position, statement) in plan_body(cx, active, procedure).await?.into_iter().enumerate() {
        if let (Some(protocol), Err(unfit)) = (one_shot, statement.plan.fit()) {
            return Err(unfit_statement(procedure, position, statement.name, unfit, protocol));
        }
    }
    Ok(())
}

async fn plan_body(cx: Planning<'_>, active: &mut Active, procedure: &ProcedureDescriptor) -> SqlResult<Vec<Statement>> {
    let hints: Vec<Option<SqlType>> = procedure.types().map(|ty| Some(ty.unbounded())).collect();
    let cx = Planning { hints: &hints, ..cx };
    let mut statements = Vec::new();
    for kind in parser::body(&procedure.body)? {
        let bound = arguments::bind(cx, active, procedure, &kind).await?;
        let plan = Box::pin(super::plan(cx, active, &bound)).await.map_err(SqlError::without_position)?;
        if plan.parameters.len() > hints.len() {
            return Err(SqlError::undefined_parameter(hints.len() + 1));
        }
        let locks = kind.locks_rows();
        statements.push(Statement { name: kind.name(), locks, plan: Arc::new(plan) });
    }
    Ok(statements)
}

/// Plans what a procedure is given, whose parameters have the types `wanted`; `None`: there is no such procedure. Returns the types of the
/// parameters of the CALL itself, too.
fn plan_given(cx: Planning<'_>, name: &str, wanted: Option<&Vec<SqlType>>, given: &[SqlExpr]) -> SqlResult<(Vec<SqlType>, Vec<Compiled>)> {
    let Given { written: given, planned, compiler } =
        Given::plan(cx, wanted.map_or(&[], Vec::as_slice), given, "what a procedure is given")?;
    let types = given.iter().zip(&planned).map(|(expr, planned)| match expr {
        SqlExpr::Value(value) if matches!(value.value, Value::Null | Value::SingleQuotedString(_)) => Ok(None),
        _ => compiler.type_of(planned).map(Some),
    });
    let types = types.collect::<SqlResult<Vec<Option<SqlType>>>>()?;
    let fits = |(from, to): (&Option<SqlType>, &SqlType)| from.as_ref().is_none_or(|from| converts(from, to));
    match wanted {
        Some(wanted) if types.len() == wanted.len() && types.iter().zip(wanted).all(fits) => {}
        _ => {
            let types: Vec<String> = types.iter().map(|ty| ty.map_or_else(|| "unknown".to_owned(), |ty| ty.name().to_owned())).collect();
            let message = format!("procedure {} does not exist", signature(name, &types));
            return Err(SqlError::new(SqlState::UndefinedFunction, message)
                .with_hint("No procedure matches the given name and argument types. You might need to add explicit type casts."));
        }
    }
    let given = planned.into_iter().map(|expr| compiler.compile(expr)).collect::<SqlResult<_>>()?;
    Ok((compiler.parameters, given))
}
