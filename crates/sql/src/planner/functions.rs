//! Calls of functions that the query engine does not know by their names, or with their arguments.

use super::{literals, patterns, plainer};
use crate::context::Facts;
use crate::engine::arrays::SUBSCRIPTS;
use crate::error::{SqlError, SqlResult};
use crate::parser::{self, NumberFunction};
use crate::types::several_dimensions;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Value,
};

/// What the query engine calls functions that it has under other names.
const OTHER_NAMES: [(&str, &str); 5] =
    [("ceiling", "ceil"), ("every", "bool_and"), ("stddev", "stddev_samp"), ("transaction_timestamp", "now"), ("variance", "var_samp")];

/// The expression that a call becomes; `None` if it stays a call. Errors 0A000, 42883.
pub fn called(function: &mut Function, facts: &Facts) -> SqlResult<Option<Expr>> {
    if function.name.0.len() > 1 && function.name.0[0].to_string().eq_ignore_ascii_case("pg_catalog") {
        function.name.0.remove(0);
    }
    if let FunctionArguments::Subquery(query) = &function.args
        && function.name.to_string().eq_ignore_ascii_case("array")
    {
        return Ok(Some(plainer::array_of(query.clone())));
    }
    if NumberFunction::of(function).is_some_and(|function| function != NumberFunction::OfColumn) {
        return Err(super::sequence::out_of_place());
    }
    let name = function.name.to_string().to_lowercase();
    if matches!(name.as_str(), "gen_random_uuid" | "uuid_generate_v4") {
        return Ok(Some(random_uuid(function)));
    }
    if name == "generate_subscripts"
        && let Some([array, dimension]) = parser::plain_arguments(function).as_deref()
    {
        if literals::whole(dimension) != Some("1") {
            return Err(several_dimensions());
        }
        return Ok(Some(plainer::call("unnest", vec![plainer::call(SUBSCRIPTS, vec![(*array).clone()])])));
    }
    if let Some((_, known)) = OTHER_NAMES.iter().find(|(own, _)| *own == name) {
        return Ok(Some(plainer::renamed(function, known)));
    }
    if name == "mod"
        && let Some([left, right]) = parser::plain_arguments(function).as_deref()
    {
        let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
        return Ok(Some(Expr::Nested(Box::new(Expr::BinaryOp { left: nested(left), op: BinaryOperator::Modulo, right: nested(right) }))));
    }
    if name == "make_interval" {
        return plainer::with_parts_of_interval(function).map(Some);
    }
    if name == "age"
        && let Some([value]) = parser::plain_arguments(function).as_deref()
    {
        return Ok(Some(plainer::call("age", vec![plainer::call("current_date", Vec::new()), (*value).clone()])));
    }
    if name == "to_char"
        && let Some([value, template]) = parser::plain_arguments(function).as_deref()
    {
        let unknown = || SqlError::unsupported("the template of to_char must be written as a text");
        let template = patterns::of_time(literals::text(template).ok_or_else(unknown)?)?;
        return Ok(Some(plainer::call("to_char", vec![(*value).clone(), plainer::text(&template)])));
    }
    let text = match &function.args {
        FunctionArguments::None => facts.function(&name, None),
        FunctionArguments::List(list) if list.args.is_empty() => facts.function(&name, None),
        FunctionArguments::List(list) => match list.args.first() {
            Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))) => match &value.value {
                Value::SingleQuotedString(argument) => facts.function(&name, Some(argument)),
                _ => None,
            },
            _ => None,
        },
        FunctionArguments::Subquery(_) => None,
    };
    Ok(text.map(|text| Expr::Value(Value::SingleQuotedString(text).into())))
}

/// The query engine has it as text.
fn random_uuid(function: &Function) -> Expr {
    let text = Function { name: ObjectName::from(vec![Ident::new("uuid")]), ..function.clone() };
    let expr = Box::new(Expr::Function(text));
    Expr::Cast { kind: CastKind::DoubleColon, expr, data_type: DataType::Uuid, array: false, format: None }
}
