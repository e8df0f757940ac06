//! PostgreSQL's dialect as the parser library has it, but for operators whose operands the library reads otherwise than PostgreSQL.
//!
//! ```text
//!   a IS DISTINCT FROM b AND c      the library takes b AND c for the second operand
//!   a IN ((SELECT …), 2)            and a list that begins with a subquery for one
//! ```

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::any::TypeId;

const LIBRARY: PostgreSqlDialect = PostgreSqlDialect {};

/// What may follow a query in brackets if the list of an `IN` is nothing else.
const AFTER_QUERY: [Keyword; 7] =
    [Keyword::UNION, Keyword::INTERSECT, Keyword::EXCEPT, Keyword::ORDER, Keyword::LIMIT, Keyword::OFFSET, Keyword::FETCH];

/// The dialect.
#[derive(Debug, Clone, Copy)]
pub struct Postgres;

/// Methods that answer as the library's dialect does.
macro_rules! as_the_library {
    ($($name:ident($($argument:ident: $ty:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $ty),*) -> $answer {
            LIBRARY.$name($($argument),*)
        })*
    };
}

impl Dialect for Postgres {
    /// The library asks for its own dialects by their types.
    fn dialect(&self) -> TypeId {
        LIBRARY.dialect()
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        let negated = match distinct(parser) {
            Some(negated) => negated,
            None => return list_after(parser).map(|negated| list(parser, expr, negated)),
        };
        let other = parser.parse_subexpr(self.prec_value(Precedence::Is));
        let (one, is) = (Box::new(expr.clone()), if negated { Expr::IsNotDistinctFrom } else { Expr::IsDistinctFrom });
        Some(other.map(|other| is(one, Box::new(other))))
    }

    as_the_library! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_delimited_identifier_start(ch: char) -> bool;
        is_identifier_start(ch: char) -> bool;
        is_identifier_part(ch: char) -> bool;
        is_custom_operator_part(ch: char) -> bool;
        is_reserved_for_identifier(word: Keyword) -> bool;
        get_next_precedence(parser: &Parser<'_>) -> Option<Result<u8, ParserError>>;
        prec_value(precedence: Precedence) -> u8;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_alter_column_type_using() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_comma_separated_trim() -> bool;
        supports_comment_on() -> bool;
        supports_comment_optimizer_hint() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_create_table_like_parenthesized() -> bool;
        supports_empty_projections() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_factorial_operator() -> bool;
        supports_filter_during_aggregation() -> bool;
        supports_geometric_types() -> bool;
        supports_group_by_expr() -> bool;
        supports_insert_table_alias() -> bool;
        supports_interval_options() -> bool;
        supports_listen_notify() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_colon_operator() -> bool;
        supports_named_fn_args_with_expr_name() -> bool;
        supports_nested_comments() -> bool;
        supports_notnull_operator() -> bool;
        supports_numeric_literal_underscores() -> bool;
        supports_select_wildcard_with_alias() -> bool;
        supports_set_names() -> bool;
        supports_string_escape_constant() -> bool;
        supports_unicode_string_literal() -> bool;
        supports_xml_expressions() -> bool;
    }
}

/// Reads `IS [NOT] DISTINCT FROM`, if that is next: whether it had the `NOT`.
fn distinct(parser: &mut Parser<'_>) -> Option<bool> {
    let negated = parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]);
    (negated || parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM])).then_some(negated)
}

/// Reads `[NOT] IN`, if that is next and its list begins with a subquery without being one: whether it had the `NOT`.
fn list_after(parser: &mut Parser<'_>) -> Option<bool> {
    let negated = usize::from(is_keyword(parser.peek_token_ref(), &[Keyword::NOT]));
    if !is_keyword(parser.peek_nth_token_ref(negated), &[Keyword::IN]) || !begins_with_query(parser, negated + 1) {
        return None;
    }
    for _ in 0..=negated {
        parser.advance_token();
    }
    Some(negated == 1)
}

/// True if the list whose bracket is so many tokens ahead begins with a query in brackets and goes on after it.
fn begins_with_query(parser: &Parser<'_>, bracket: usize) -> bool {
    let all = (0..).map(|place| parser.peek_nth_token_no_skip(place)).filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut rest = all.take_while(|token| token.token != Token::EOF).skip(bracket);
    if rest.next().is_none_or(|token| token.token != Token::LParen) {
        return false;
    }
    let (mut depth, mut is_query) = (0_usize, false);
    while let Some(token) = rest.next() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => {
                let goes_on = |next: TokenWithSpan| next.token != Token::RParen && !is_keyword(&next, &AFTER_QUERY);
                return is_query && rest.next().is_some_and(goes_on);
            }
            Token::RParen if depth > 0 => depth -= 1,
            _ if is_query => {}
            _ if depth > 0 && is_keyword(&token, &[Keyword::SELECT, Keyword::WITH]) => is_query = true,
            _ => return false,
        }
    }
    false
}

fn list(parser: &mut Parser<'_>, expr: &Expr, negated: bool) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let list = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::InList { expr: Box::new(expr.clone()), list, negated })
}

fn is_keyword(token: &TokenWithSpan, keywords: &[Keyword]) -> bool {
    matches!(&token.token, Token::Word(word) if keywords.contains(&word.keyword))
}

#[cfg(test)]
mod tests {
    use crate::parser::expression;
    use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};

    fn read(sql: &str) -> Expr {
        expression(sql).unwrap_or_else(|error| panic!("{error} by {sql}"))
    }

    /// The same with a bracket around each operation.
    fn bracketed(expr: &Expr) -> String {
        match expr {
            Expr::Nested(inner) => bracketed(inner),
            Expr::IsDistinctFrom(one, other) => format!("({} distinct {})", bracketed(one), bracketed(other)),
            Expr::IsNotDistinctFrom(one, other) => format!("({} same {})", bracketed(one), bracketed(other)),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => format!("({} and {})", bracketed(left), bracketed(right)),
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => format!("({} or {})", bracketed(left), bracketed(right)),
            Expr::UnaryOp { expr, .. } => format!("(not {})", bracketed(expr)),
            other => other.to_string(),
        }
    }

    #[test]
    fn the_second_operand_of_is_distinct_ends_before_and_and_or() {
        for (sql, means) in [
            ("a IS DISTINCT FROM b AND c", "((a distinct b) and c)"),
            ("x AND a IS DISTINCT FROM b OR c", "((x and (a distinct b)) or c)"),
            ("NOT a IS NOT DISTINCT FROM b + 1 OR c", "((not (a same b + 1)) or c)"),
            ("a IS DISTINCT FROM b = c AND d", "((a distinct b = c) and d)"),
            ("a IS DISTINCT FROM b BETWEEN 1 AND 2 AND c", "((a distinct b BETWEEN 1 AND 2) and c)"),
            ("a IS DISTINCT FROM (b IS DISTINCT FROM c AND d) OR e", "((a distinct ((b distinct c) and d)) or e)"),
            ("a IS DISTINCT FROM b", "(a distinct b)"),
        ] {
            assert_eq!(bracketed(&read(sql)), means, "{sql}");
        }
    }

    #[test]
    fn a_list_may_begin_with_a_subquery() {
        for (sql, items) in [
            ("a IN ((SELECT 1), 2)", 2),
            ("a NOT IN ((SELECT 1) + 1)", 1),
            ("a IN (((SELECT 1)), (SELECT 2), 3)", 3),
            ("a IN /* a comment */ ( ( WITH b AS (SELECT 1) SELECT * FROM b ) , 3)", 2),
            ("a IN ((1), (SELECT 2))", 2),
        ] {
            assert!(
                matches!(read(sql), Expr::InList { list, negated, .. } if list.len() == items && negated == sql.contains("NOT")),
                "{sql}"
            );
        }
        for sql in ["a IN ((SELECT 1))", "a IN ((SELECT 1) UNION (SELECT 2))", "a IN (SELECT 1)", "a IN (((SELECT 1) LIMIT 1))"] {
            assert!(matches!(read(sql), Expr::InSubquery { .. }), "{sql}");
        }
    }
}
