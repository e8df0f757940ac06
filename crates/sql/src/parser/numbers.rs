//! Calls of the functions of sequences: which sequence they are about, and where they stand.

use super::{Postgres, expression, fold, kept, quoted};
use crate::error::{SqlError, SqlResult, SqlState};
use datafusion::sql::sqlparser::ast::{
    self, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart,
    SelectItem, SetExpr, Value, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use rhumb_generic::{Part, walk, walk_mut};
use std::ops::ControlFlow;

/// A function of sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFunction {
    /// `nextval(name)`
    Next,
    /// `currval(name)`
    Current,
    /// `lastval()`
    Last,
    /// `setval(name, number)` and `setval(name, number, called)`
    Set,
    /// `pg_get_serial_sequence(table, column)`
    OfColumn,
}

impl NumberFunction {
    /// The function that a call is of; `None`: another one.
    pub fn of(function: &Function) -> Option<NumberFunction> {
        let parts: Option<Vec<String>> = function.name.0.iter().map(|part| part.as_ident().map(fold)).collect();
        let name = match parts?.as_slice() {
            [name] => name.clone(),
            [schema, name] if schema == "pg_catalog" => name.clone(),
            _ => return None,
        };
        Some(match name.as_str() {
            "nextval" => NumberFunction::Next,
            "currval" => NumberFunction::Current,
            "lastval" => NumberFunction::Last,
            "setval" => NumberFunction::Set,
            "pg_get_serial_sequence" => NumberFunction::OfColumn,
            _ => return None,
        })
    }
}

/// True if a function is called whose name, without its schema, is one of these.
pub fn calls_named(part: &impl Part, is_one: impl Fn(&str) -> bool) -> bool {
    struct Finder<F>(F);
    impl<F: Fn(&str) -> bool> Visitor for Finder<F> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
            let name = function.name.0.last().and_then(ObjectNamePart::as_ident).map(fold);
            if name.is_some_and(|name| (self.0)(&name)) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    walk(part, &mut Finder(is_one)).is_err()
}

/// What a call is given, if that is plain expressions.
pub fn plain_arguments(function: &Function) -> Option<Vec<&Expr>> {
    if function.over.is_some() || function.filter.is_some() || !function.within_group.is_empty() {
        return None;
    }
    let arguments = match &function.args {
        FunctionArguments::None => return Some(Vec::new()),
        FunctionArguments::List(list) if list.duplicate_treatment.is_none() && list.clauses.is_empty() => &list.args,
        _ => return None,
    };
    arguments
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
            _ => None,
        })
        .collect()
}

/// The text that an expression is, be it cast to a type of names.
pub fn constant_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Cast { expr, data_type: DataType::Regclass | DataType::Text | DataType::Custom(..), .. } => constant_text(expr),
        Expr::Nested(expr) => constant_text(expr),
        _ => None,
    }
}

/// The name that a text spells, as `nextval('public."S"')` has it.
pub fn spelt(text: &str) -> SqlResult<ObjectName> {
    let parsed = Parser::new(&Postgres).try_with_sql(text).and_then(|mut parser| {
        let name = parser.parse_object_name(false)?;
        match parser.peek_token().token {
            Token::EOF => Ok(name),
            _ => parser.expected("end of name", parser.peek_token()),
        }
    });
    parsed.map_err(|_| SqlError::new(SqlState::InvalidName, "invalid name syntax"))
}

/// The default of a column that takes its values from a sequence.
pub fn next_number(sequence: &str) -> String {
    format!("nextval('{}'::regclass)", quoted(sequence).replace('\'', "''"))
}

/// The sequences that the text of an expression, as the catalog has it, takes numbers from.
pub fn sequences_named(text: &str) -> Vec<String> {
    struct Finder(Vec<String>);
    impl Visitor for Finder {
        type Break = SqlError;
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
            self.0.extend(sequence_of(expr));
            ControlFlow::Continue(())
        }
    }
    let mut finder = Finder(Vec::new());
    if text.to_ascii_lowercase().contains("val")
        && let Ok(expr) = expression(text)
    {
        let walked = walk(&expr, &mut finder);
        debug_assert!(walked.is_ok(), "it sees all of them");
    }
    finder.0
}

/// True if it takes numbers from the sequence of that name.
pub fn names_sequence(text: &str, sequence: &str) -> bool {
    sequences_named(text).iter().any(|name| name == sequence)
}

/// The same text with another name for that sequence.
pub fn with_sequence_renamed(text: &str, from: &str, to: &str) -> SqlResult<String> {
    struct Renamer<'a>(&'a str, &'a str);
    impl VisitorMut for Renamer<'_> {
        type Break = SqlError;
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
            if sequence_of(expr).is_some_and(|name| name == self.0)
                && let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = expr
                && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(name))) = list.args.first_mut()
            {
                *name = Expr::Cast {
                    kind: CastKind::DoubleColon,
                    expr: Box::new(text_expr(quoted(self.1))),
                    data_type: DataType::Regclass,
                    array: false,
                    format: None,
                };
            }
            ControlFlow::Continue(())
        }
    }
    if !names_sequence(text, from) {
        return Ok(text.to_owned());
    }
    let mut expr = expression(text).map_err(|error| SqlError::corrupted("a default", error))?;
    walk_mut(&mut expr, &mut Renamer(from, to))?;
    kept(&expr)
}

/// The name of the sequence that an expression is a call about, in the schema that it is in or none.
fn sequence_of(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else { return None };
    if !matches!(NumberFunction::of(function)?, NumberFunction::Next | NumberFunction::Current) {
        return None;
    }
    let name = spelt(constant_text(plain_arguments(function)?.first()?)?).ok()?;
    name.0.last().and_then(ObjectNamePart::as_ident).map(fold)
}

fn text_expr(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

/// True if a part of a statement calls one of these functions.
pub fn calls(part: &impl Part, which: impl Fn(NumberFunction) -> bool) -> bool {
    struct Finder<F>(F, bool);
    impl<F: Fn(NumberFunction) -> bool> Visitor for Finder<F> {
        type Break = SqlError;
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
            if let Expr::Function(function) = expr {
                self.1 |= NumberFunction::of(function).is_some_and(&self.0);
            }
            ControlFlow::Continue(())
        }
    }
    let mut finder = Finder(which, false);
    let walked = walk(part, &mut finder);
    debug_assert!(walked.is_ok(), "it sees all of them");
    finder.1
}

/// True if a part of a statement calls one of these functions within a query.
pub fn calls_in_queries(part: &impl Part) -> bool {
    struct Finder(bool);
    impl Visitor for Finder {
        type Break = SqlError;
        fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<SqlError> {
            self.0 |= calls(query, |_| true);
            ControlFlow::Continue(())
        }
    }
    let mut finder = Finder(false);
    let walked = walk(part, &mut finder);
    debug_assert!(walked.is_ok(), "it sees all of them");
    finder.0
}

/// Replaces calls, in the order in which they stand, inner ones first: with what `replacement` gives for each, if it gives something.
pub fn replace_calls(part: &mut impl Part, replacement: impl FnMut(NumberFunction, &Function) -> SqlResult<Option<Expr>>) -> SqlResult<()> {
    struct Replacer<F>(F);
    impl<F: FnMut(NumberFunction, &Function) -> SqlResult<Option<Expr>>> VisitorMut for Replacer<F> {
        type Break = SqlError;
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
            let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
            let Some(which) = NumberFunction::of(function) else { return ControlFlow::Continue(()) };
            match (self.0)(which, function) {
                Ok(Some(new)) => *expr = new,
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(error),
            }
            ControlFlow::Continue(())
        }
    }
    walk_mut(part, &mut Replacer(replacement))
}

/// If all items of a select list are calls of setval(): the same query with what they are given as items, three each, and the names of the
/// items. Error 0A000 if some are.
pub fn set_calls(query: &ast::Query) -> SqlResult<Option<(Box<ast::Query>, Vec<String>)>> {
    if !calls(query, |function| function == NumberFunction::Set) {
        return Ok(None);
    }
    let refused = || {
        SqlError::unsupported("setval() is not supported here")
            .with_hint("Write SELECT setval(sequence, number), with nothing around the calls.")
    };
    let mut query = Box::new(query.clone());
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(refused()) };
    let (mut items, mut names) = (Vec::new(), Vec::new());
    for item in std::mem::take(&mut select.projection) {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, "setval".to_owned()),
            SelectItem::ExprWithAlias { expr, alias } => (expr, fold(&alias)),
            _ => return Err(refused()),
        };
        let Expr::Function(function) = &expr else { return Err(refused()) };
        if NumberFunction::of(function) != Some(NumberFunction::Set) {
            return Err(refused());
        }
        let arguments = plain_arguments(function).filter(|arguments| matches!(arguments.len(), 2 | 3));
        let arguments = arguments.ok_or_else(|| {
            SqlError::new(SqlState::UndefinedFunction, format!("there is no such function: {function}"))
                .with_hint("Call setval(sequence, number) or setval(sequence, number, is_called).")
        })?;
        let called = Expr::Value(Value::Boolean(true).into());
        let given =
            arguments.into_iter().cloned().chain([called]).take(3).zip([None, Some(DataType::BigInt(None)), Some(DataType::Boolean)]);
        for (expr, ty) in given {
            let expr = match ty {
                Some(data_type) => Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None },
                None => expr,
            };
            let alias = Ident::with_quote('"', format!("{}{}", super::names::MARK, items.len()));
            items.push(SelectItem::ExprWithAlias { expr, alias });
        }
        names.push(name);
    }
    select.projection = items;
    if calls(&query, |function| function == NumberFunction::Set) {
        return Err(refused());
    }
    Ok(Some((query, names)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_found_and_renamed_however_their_names_are_written() {
        for (text, name) in [
            ("nextval('s'::regclass)", "s"),
            ("nextval('S')", "s"),
            ("'N' || nextval('public.\"My S\"')", "My S"),
            ("coalesce(pg_catalog.nextval('s'::TEXT), 0)", "s"),
            ("NextVal('s')", "s"),
        ] {
            assert!(names_sequence(text, name), "{text}");
            let renamed = with_sequence_renamed(text, name, "It's").expect("renamed");
            assert!(renamed.to_lowercase().contains("nextval('\"it''s\"'::regclass)") && !names_sequence(&renamed, name), "{renamed}");
            assert!(names_sequence(&renamed, "It's"), "{renamed}");
        }
        assert!(!names_sequence("lower('s')", "s"));
        assert_eq!(with_sequence_renamed("1 + 1", "s", "t").as_deref(), Ok("1 + 1"));
    }
}
