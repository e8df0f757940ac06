//! What PostgreSQL's clients write and the query engine's planner does not know, rewritten in the parsed statement.
//!
//! - functions of the session (`current_user`, `version()` …) become constants;
//! - the qualifiers `pg_catalog` and `public`, and the database's own name, are taken off names, and `rhumb.quotas` and the like become one name;
//! - `OPERATOR(pg_catalog.~)` becomes the operator, and `COLLATE` is dropped: text is ordered by its bytes;
//! - the types that only system tables have become text and numbers;
//! - `= ANY (ARRAY[…])` becomes `IN`, and patterns of `LIKE` are escaped by backslashes;
//! - text cast to `uuid`, `bytea` or `numeric` is put into its canonical form, and timestamps have microseconds, and `gen_random_uuid()` is a function of the query engine;
//! - comparisons of rows are those of their parts, `SIMILAR TO` is a regular expression, and `-2 ^ 2` the power of a negative number;
//! - `INTERVAL '1' DAY` is a text that is cast, and the frames of windows are kept as they are written;
//! - a window that names another has all of its definition, and a text that is a condition is read as a truth value;
//! - the values of a column of `VALUES` have one type.

use super::{ambiguous, functions, lateral, literals, ordering, patterns, plainer, rows, using, values, windows};
use crate::context::{CURRENT_SETTING, Facts};
use crate::engine::arrays::SUBSCRIPTS;
use crate::engine::functions::EXTRACT;
use crate::error::{SqlError, SqlResult};
use crate::parser::names::MARK;
use crate::parser::{self, unqualified};
use crate::pg_catalog::{CLASS_NAME, CLASS_OID, reads_system_tables, schema_table};
use crate::types::{Datum, NUMERIC_PRECISION_MAX, SqlType, parse_text, several_dimensions, to_text, written_decimal};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Ident, Insert, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, Query, Select, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TypedString, UnaryOperator, Value, VisitorMut,
    WindowFrame, WindowType,
};
use rhumb_generic::{Part, walk_mut};
use std::ops::ControlFlow;

/// The one function that returns rows. Its column is called as it is itself, or as its alias.
const GENERATE_SERIES: &str = "generate_series";
const UNNEST: &str = "unnest";
/// The digits of a second that a timestamp has. To the query engine it would have nine, and end in 2262.
const TIMESTAMP_DIGITS: u64 = 6;

/// Rewrites a statement or a part of one.
pub fn rewrite(part: &mut impl Part, facts: &Facts) -> SqlResult<()> {
    walk_mut(part, &mut Rewriter { facts, reads_system_tables: false, is_assigned: false, frames: Vec::new() })?;
    rewrite_queries(part)
}

/// What is rewritten of whole queries, once their expressions are.
fn rewrite_queries(part: &mut impl Part) -> SqlResult<()> {
    lateral::rewrite(part)?;
    using::name_tables(part)?;
    ordering::rewrite(part)?;
    ambiguous::disambiguate(part)
}

/// Rewrites an INSERT, whose own rows have the types of its columns.
pub fn rewrite_insert(insert: &mut Insert, facts: &Facts) -> SqlResult<()> {
    walk_mut(insert, &mut Rewriter { facts, reads_system_tables: false, is_assigned: true, frames: Vec::new() })?;
    rewrite_queries(insert)
}

/// Rewrites a query.
pub fn rewrite_query(query: &mut Box<Query>, facts: &Facts) -> SqlResult<()> {
    let reads_system_tables = reads_system_tables(query);
    walk_mut(query, &mut Rewriter { facts, reads_system_tables, is_assigned: false, frames: Vec::new() })?;
    rewrite_queries(query)
}

/// True if a function in it answers what a setting is now.
pub fn reads_settings(part: &impl Part) -> bool {
    parser::calls_named(part, |name| name == CURRENT_SETTING)
}

struct Rewriter<'a> {
    facts: &'a Facts,
    reads_system_tables: bool,
    /// True until the query is seen whose rows are inserted.
    is_assigned: bool,
    /// The frames of the windows that are being looked at.
    frames: Vec<Option<WindowFrame>>,
}

impl VisitorMut for Rewriter<'_> {
    type Break = SqlError;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<SqlError> {
        literals::keep_of_table(table);
        if let TableFactor::Table { name, alias, args: Some(_), .. } = table
            && name.0.last().and_then(ObjectNamePart::as_ident).map(crate::parser::fold).as_deref() == Some(GENERATE_SERIES)
        {
            // A table may be called so.
            *name = ObjectName::from(vec![Ident::new(format!("{MARK}{GENERATE_SERIES}"))]);
            let name = alias.as_ref().map_or_else(|| Ident::new(GENERATE_SERIES), |alias| alias.name.clone());
            let alias = alias.get_or_insert(TableAlias { explicit: true, name: name.clone(), columns: Vec::new(), at: None });
            if alias.columns.is_empty() {
                alias.columns.push(TableAliasColumnDef { name, data_type: None });
            }
        }
        lateral::as_unnest(table);
        if let TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } = table {
            let name = alias.as_ref().map_or_else(|| Ident::new(UNNEST), |alias| alias.name.clone());
            let alias = alias.get_or_insert(TableAlias { explicit: true, name: name.clone(), columns: Vec::new(), at: None });
            // One column is called as the table is; several are called after the function.
            for place in alias.columns.len()..array_exprs.len() {
                let several = || Ident::with_quote('"', format!("{UNNEST}{MARK}{place}"));
                let own = if array_exprs.len() == 1 { name.clone() } else { several() };
                alias.columns.push(TableAliasColumnDef { name: own, data_type: None });
            }
            if std::mem::take(with_ordinality) {
                array_exprs.push(plainer::call(SUBSCRIPTS, array_exprs.clone()));
                if alias.columns.len() < array_exprs.len() {
                    alias.columns.push(TableAliasColumnDef { name: Ident::new("ordinality"), data_type: None });
                }
            }
        }
        // A table of a schema goes by its own name in the rest of the statement.
        if let TableFactor::Table { name, alias: alias @ None, .. } = table
            && let Some((table, _)) = of_site(name, &self.facts.database)
        {
            *alias = Some(TableAlias { explicit: true, name: Ident::new(table), columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        let is_assigned = std::mem::take(&mut self.is_assigned);
        // Its ORDER BY may name the windows of its SELECT.
        if let Err(error) = plainer::fetch_as_limit(query) {
            return ControlFlow::Break(error);
        }
        literals::keep_of_query(query);
        match query.body.as_mut() {
            SetExpr::Select(select) => {
                windows::complete(select, query.order_by.as_mut()).map_or_else(ControlFlow::Break, ControlFlow::Continue)
            }
            SetExpr::Values(values) => {
                if !is_assigned {
                    values::unify(values);
                }
                let queries = values::as_queries(values);
                queries.into_iter().for_each(|queries| *query.body = queries);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        literals::keep_of_select(select);
        if plainer::aggregates_in_order(select) {
            for item in &mut select.from {
                if let TableFactor::Derived { subquery, .. } = &mut item.relation {
                    plainer::keep_order(subquery);
                }
            }
        }
        match complete(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<SqlError> {
        if let Some((_, table)) = of_site(name, &self.facts.database) {
            *name = ObjectName::from(vec![Ident::with_quote('"', table)]);
            return ControlFlow::Continue(());
        }
        match unqualified(name, &self.facts.database) {
            Ok(table) => {
                *name = ObjectName::from(vec![table]);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Expr::Function(function) = expr {
            literals::keep_of_function(function);
            // What bounds a frame stays as it is written.
            if let Some(WindowType::WindowSpec(window)) = &mut function.over {
                self.frames.push(window.window_frame.take());
            }
        }
        // First, so that what is within the list is seen as what it has become.
        if let Some(list) = plainer::list_of_array(expr) {
            *expr = list;
        }
        // `t.list[1]` is read as if the list were a part of a column `t`.
        if let Expr::CompoundFieldAccess { root, access_chain } = expr
            && let Expr::Identifier(table) = root.as_ref()
            && let Some(AccessExpr::Dot(Expr::Identifier(column))) = access_chain.first()
        {
            **root = Expr::CompoundIdentifier(vec![table.clone(), column.clone()]);
            access_chain.remove(0);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match self.replacement(expr) {
            Ok(Some(new)) => *expr = new,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl Rewriter<'_> {
    fn replacement(&mut self, expr: &mut Expr) -> SqlResult<Option<Expr>> {
        if let Some(new) = rows::by_parts(expr)?.or_else(|| literals::typed(expr)) {
            return Ok(Some(new));
        }
        match expr {
            Expr::Function(function) => {
                // Functions within have no window, and so no frame.
                if let Some(WindowType::WindowSpec(window)) = &mut function.over
                    && let Some(frame) = self.frames.pop()
                {
                    window.window_frame = frame;
                }
                functions::called(function, self.facts)
            }
            Expr::Array(array) if array.elem.iter().any(|element| matches!(element, Expr::Array(_))) => Err(several_dimensions()),
            Expr::Interval(interval) => literals::interval(interval).map(Some),
            Expr::Collate { expr, .. } => Ok(Some((**expr).clone())),
            Expr::Extract { field, expr, .. } => {
                Ok(Some(plainer::call(EXTRACT, vec![plainer::text(&field.to_string()), (**expr).clone()])))
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                Ok(Some(plainer::call("timezone", vec![(**time_zone).clone(), (**timestamp).clone()])))
            }
            Expr::UnaryOp { op, expr } if let Some(function) = function_of(*op) => {
                Ok(Some(plainer::call(function, vec![(**expr).clone()])))
            }
            Expr::AnyOp { .. } | Expr::AllOp { .. } => Ok(plainer::quantified(expr)),
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                let escape = escape_char.take().map(|escape| escape.value);
                match escape {
                    Some(Value::SingleQuotedString(escape) | Value::EscapedStringLiteral(escape)) => {
                        if escape != "\\" {
                            let other = std::mem::replace(&mut **pattern, Expr::Value(Value::Null.into()));
                            **pattern = plainer::with_backslashes(other, &escape)?;
                        }
                    }
                    other => *escape_char = other.map(Into::into),
                }
                Ok(None)
            }
            Expr::BinaryOp { op, .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(parts) = op
                    && let Some(plain) = parts.last().and_then(|name| operator(name))
                {
                    *op = plain;
                }
                Ok(None)
            }
            Expr::SimilarTo { negated, expr: inner, pattern, escape_char } => {
                similar(inner, pattern, escape_char.as_ref().map(|escape| &escape.value), *negated).map(Some)
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => Ok(literals::power_of_negative(inner)),
            Expr::Cast { .. } | Expr::TypedString(_) => self.of_cast(expr),
            _ => Ok(None),
        }
    }
}

impl Rewriter<'_> {
    /// A cast whose value, or whose type, the query engine has otherwise.
    fn of_cast(&self, expr: &mut Expr) -> SqlResult<Option<Expr>> {
        match expr {
            Expr::Cast { expr: inner, data_type: DataType::Custom(name, _), .. } => Ok(self.catalog_cast(inner, name)),
            Expr::Cast { expr: inner, data_type: DataType::Regclass, .. } => Ok(Some(self.regclass(inner))),
            Expr::Cast { expr: inner, data_type: data_type @ DataType::Array(_), .. } => {
                Ok(Some(plainer::cast_to_array(inner, &SqlType::from_ast(data_type)?)))
            }
            Expr::Cast { expr: inner, data_type: DataType::Bytea, .. } => {
                if let Some(text) = literals::text(inner) {
                    **inner = bytes(text)?;
                }
                Ok(None)
            }
            Expr::Cast { data_type: DataType::Timestamp(digits @ None, _), .. }
            | Expr::TypedString(TypedString { data_type: DataType::Timestamp(digits @ None, _), .. }) => {
                *digits = Some(TIMESTAMP_DIGITS);
                Ok(None)
            }
            Expr::Cast {
                expr: inner,
                data_type: DataType::Numeric(ExactNumberInfo::None) | DataType::Decimal(ExactNumberInfo::None),
                ..
            } => Ok(literals::text(inner).and_then(number)),
            Expr::TypedString(TypedString { data_type: DataType::Numeric(ExactNumberInfo::None), value, .. }) => match &value.value {
                Value::SingleQuotedString(text) => Ok(number(text)),
                _ => Ok(None),
            },
            Expr::TypedString(TypedString { data_type: DataType::Bytea, value, .. }) => match &value.value {
                Value::SingleQuotedString(text) => bytes(text).map(Some),
                _ => Ok(None),
            },
            Expr::Cast { expr: inner, data_type: DataType::Uuid, .. } => match inner.as_ref() {
                Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(text) => {
                        let canonical = to_text(&SqlType::Uuid, &parse_text(&SqlType::Uuid, text)?).unwrap_or_default();
                        **inner = Expr::Value(Value::SingleQuotedString(canonical).into());
                        Ok(None)
                    }
                    _ => Ok(None),
                },
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// A cast to `regclass`: what is written as a text is the number of the relation of that name; what is a number, as a column is, is its name.
    /// Beside no system tables it stays as it is.
    fn regclass(&self, inner: &Expr) -> Expr {
        if !self.reads_system_tables {
            return inner.clone();
        }
        let is_text = matches!(inner, Expr::Value(_) | Expr::Function(_) | Expr::Cast { .. });
        plainer::call(if is_text { CLASS_OID } else { CLASS_NAME }, vec![inner.clone()])
    }

    /// A cast to a type that only the system tables have: names are text here, and numbers of objects just numbers.
    fn catalog_cast(&self, inner: &Expr, name: &ObjectName) -> Option<Expr> {
        let name = name.0.last()?.as_ident().map(crate::parser::fold)?;
        let text = |inner: &Expr| Expr::Cast {
            kind: CastKind::DoubleColon,
            expr: Box::new(inner.clone()),
            data_type: DataType::Text,
            array: false,
            format: None,
        };
        match name.as_str() {
            "name" | "char" | "text" => Some(text(inner)),
            "regclass" => Some(self.regclass(inner)),
            "oid" => Some(match inner {
                Expr::Function(function) if function.name.to_string() == CLASS_NAME => plainer::renamed(function, CLASS_OID),
                inner => inner.clone(),
            }),
            "regtype" | "regproc" | "regnamespace" | "regrole" => Some(inner.clone()),
            _ => None,
        }
    }
}

/// A SELECT with its conditions and windows as the query engine needs them. Errors 0A000, 22P02, 42704, 42P20.
fn complete(select: &mut Select) -> SqlResult<()> {
    select.selection.iter_mut().chain(&mut select.having).try_for_each(as_condition)?;
    select.from.iter().flat_map(|table| &table.joins).try_for_each(|join| check_join(&join.join_operator))?;
    windows::complete(select, None)
}

/// A text that stands where a condition does is the truth value that it spells.
fn as_condition(expr: &mut Expr) -> SqlResult<()> {
    if let Some(text) = literals::text(expr)
        && let Datum::Boolean(Some(value)) = parse_text(&SqlType::Bool, text)?
    {
        *expr = Expr::Value(Value::Boolean(value).into());
    }
    Ok(())
}

/// The query engine takes a column of USING from the left table, where it is NULL if a row is of the right table alone.
fn check_join(operator: &JoinOperator) -> SqlResult<()> {
    match operator {
        JoinOperator::Right(on) | JoinOperator::RightOuter(on) | JoinOperator::FullOuter(on)
            if matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural) =>
        {
            Err(SqlError::unsupported("RIGHT and FULL JOIN take neither USING nor NATURAL")
                .with_hint("Join ON the columns, and select coalesce(a.column, b.column)."))
        }
        _ => Ok(()),
    }
}

/// A text that spells a number, as the number with the decimal places that it is written with. `None` for one that is to be rounded, or is none.
fn number(text: &str) -> Option<Expr> {
    let written = written_decimal(text)?;
    let number = |digits: &str| Expr::Value(Value::Number(digits.to_owned(), false).into());
    let number = match written.strip_prefix('-') {
        None => number(&written),
        Some(digits) => Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number(digits)) })),
    };
    if written.contains('.') {
        return Some(number);
    }
    // Without decimal places it would be an integer.
    let data_type = DataType::Numeric(ExactNumberInfo::PrecisionAndScale(NUMERIC_PRECISION_MAX.into(), 0));
    Some(Expr::Cast { kind: CastKind::DoubleColon, expr: Box::new(number), data_type, array: false, format: None })
}

/// A text that spells bytes, as a constant of bytes. Error 22P02.
fn bytes(text: &str) -> SqlResult<Expr> {
    let printed = to_text(&SqlType::Bytea, &parse_text(&SqlType::Bytea, text)?).unwrap_or_default();
    Ok(Expr::Value(Value::HexStringLiteral(printed.trim_start_matches("\\x").to_owned()).into()))
}

fn similar(expr: &Expr, pattern: &Expr, escape: Option<&Value>, negated: bool) -> SqlResult<Expr> {
    let unknown = || SqlError::unsupported("the pattern of SIMILAR TO must be written as a text");
    let escape = match escape {
        None => Some('\\'),
        Some(Value::SingleQuotedString(escape) | Value::EscapedStringLiteral(escape)) => escape.chars().next(),
        Some(_) => return Err(unknown()),
    };
    let regex = patterns::similar(literals::text(pattern).ok_or_else(unknown)?, escape)?;
    let op = if negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
    Ok(Expr::BinaryOp { left: Box::new(expr.clone()), op, right: Box::new(plainer::text(&regex)) })
}

/// The function that an operator stands for.
fn function_of(op: UnaryOperator) -> Option<&'static str> {
    Some(match op {
        UnaryOperator::PGAbs => "abs",
        UnaryOperator::PGSquareRoot => "sqrt",
        UnaryOperator::PGCubeRoot => "cbrt",
        _ => return None,
    })
}

fn operator(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        ">" => BinaryOperator::Gt,
        _ => return None,
    })
}

/// The table of another schema that a name stands for, such as `rhumb.quotas`, with or without the name of the session's database before it.
fn of_site(name: &ObjectName, database: &str) -> Option<(&'static str, &'static str)> {
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(crate::parser::fold)).collect();
    match parts.as_deref()? {
        [qualifiers @ .., schema, table] if qualifiers.is_empty() || qualifiers == [database] => schema_table(schema, table),
        _ => None,
    }
}
