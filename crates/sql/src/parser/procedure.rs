//! CREATE PROCEDURE, as PostgreSQL writes it:
//!
//! ```text
//!   CREATE [OR REPLACE] PROCEDURE pay (amount INT, payer INT) LANGUAGE SQL AS $$ UPDATE …; INSERT … $$
//!   CREATE [OR REPLACE] PROCEDURE pay (amount INT, payer INT) BEGIN ATOMIC UPDATE …; INSERT …; END
//! ```
//! sqlparser knows neither form of the body. The second holds semicolons that end no statement, so it has a say where statements are
//! separated. A body is kept as the text that it was; what its statements may be is said here too.

use super::statement::{Create, ProcedureDefinition, StatementKind};
use super::{error, fold, is_word, parse};
use crate::error::{SqlError, SqlResult, SqlState};
use datafusion::sql::sqlparser::ast::DataType;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The tokens of each statement of a text, without the semicolons between them.
pub fn split(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let mut statements = Vec::new();
    let mut rest = tokens;
    loop {
        let end = end_of_first(rest);
        statements.push(&rest[..end]);
        match rest.get(end + 1..) {
            Some(after) => rest = after,
            None => return statements,
        }
    }
}

/// Where the semicolon after the first statement stands. Of those in a body between BEGIN and END none is it; CASE has an END, too.
fn end_of_first(tokens: &[TokenWithSpan]) -> usize {
    let is_procedure = is_procedure(tokens);
    let mut depth = 0_usize;
    let ends = |token: &TokenWithSpan| {
        match &token.token {
            Token::SemiColon => return depth == 0,
            token if is_procedure && (is_word(token, "BEGIN") || depth > 0 && is_word(token, "CASE")) => depth += 1,
            token if is_procedure && is_word(token, "END") => depth = depth.saturating_sub(1),
            _ => {}
        }
        false
    };
    tokens.iter().position(ends).unwrap_or(tokens.len())
}

/// True if a text begins with CREATE PROCEDURE.
fn is_procedure(tokens: &[TokenWithSpan]) -> bool {
    let words = tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_)));
    let words: Vec<&Token> = words.take(4).collect();
    let begins_with = |wanted: &[&str]| words.len() >= wanted.len() && words.iter().zip(wanted).all(|(token, word)| is_word(token, word));
    begins_with(&["CREATE", "PROCEDURE"]) || begins_with(&["CREATE", "OR", "REPLACE", "PROCEDURE"])
}

/// CREATE PROCEDURE. `None`: it is another statement, and the parser still stands before it.
pub fn procedure(sql: &str, parser: &mut Parser<'_>) -> Option<SqlResult<StatementKind>> {
    let or_replace = if parser.parse_keywords(&[Keyword::CREATE, Keyword::OR, Keyword::REPLACE, Keyword::PROCEDURE]) {
        true
    } else if parser.parse_keywords(&[Keyword::CREATE, Keyword::PROCEDURE]) {
        false
    } else {
        return None;
    };
    Some(create(sql, parser, or_replace).map(|definition| StatementKind::Create(Create::Procedure(Box::new(definition)))))
}

fn create(sql: &str, parser: &mut Parser<'_>, or_replace: bool) -> SqlResult<ProcedureDefinition> {
    let syntax = |error: ParserError| error::from_parser(sql, error);
    let name = parser.parse_object_name(false).map_err(syntax)?;
    parser.expect_token(&Token::LParen).map_err(syntax)?;
    let mut parameters = Vec::new();
    if !parser.consume_token(&Token::RParen) {
        loop {
            parameters.push(parameter(sql, parser)?);
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen).map_err(syntax)?;
    }
    let mut body = None;
    loop {
        let clause = parser.next_token();
        let given = match &clause.token {
            Token::EOF => break,
            word if is_word(word, "LANGUAGE") => {
                language(sql, parser)?;
                continue;
            }
            word if is_word(word, "AS") => text(parser).map_err(syntax)?,
            word if is_word(word, "BEGIN") && parser.parse_keyword(Keyword::ATOMIC) => atomic(sql, parser).map_err(syntax)?,
            _ => return Err(syntax(expected(parser, "LANGUAGE SQL, AS or BEGIN ATOMIC", clause))),
        };
        if body.replace(given).is_some() {
            return Err(syntax(expected(parser, "one body", clause)));
        }
    }
    match body {
        Some(body) => Ok(ProcedureDefinition { or_replace, name, parameters, body }),
        None => Err(SqlError::new(SqlState::InvalidFunctionDefinition, "no procedure body specified")
            .with_hint("Write AS $$ statements $$, or BEGIN ATOMIC statements END.")),
    }
}

fn expected(parser: &Parser<'_>, what: &str, found: TokenWithSpan) -> ParserError {
    parser.expected::<()>(what, found).expect_err("that is what it makes")
}

fn parameter(sql: &str, parser: &mut Parser<'_>) -> SqlResult<(String, DataType)> {
    let _ = parser.parse_keyword(Keyword::IN);
    for word in ["OUT", "INOUT", "VARIADIC"] {
        if is_word(&parser.peek_token().token, word) {
            return Err(SqlError::unsupported(format!("{word} parameters of procedures are not supported")));
        }
    }
    let name = parser.parse_identifier().map_err(|error| error::from_parser(sql, error))?;
    let ty = parser.parse_data_type().map_err(|error| error::from_parser(sql, error))?;
    if parser.parse_keyword(Keyword::DEFAULT) || parser.consume_token(&Token::Eq) {
        return Err(SqlError::unsupported("default values of parameters of procedures are not supported"));
    }
    Ok((fold(&name), ty))
}

fn language(sql: &str, parser: &mut Parser<'_>) -> SqlResult<()> {
    let token = parser.next_token();
    let name = match &token.token {
        Token::Word(word) => word.value.clone(),
        Token::SingleQuotedString(name) => name.clone(),
        _ => return Err(error::from_parser(sql, expected(parser, "the name of a language", token))),
    };
    if name.eq_ignore_ascii_case("sql") {
        return Ok(());
    }
    let message = format!("language \"{}\" does not exist", name.to_lowercase());
    Err(SqlError::new(SqlState::UndefinedObject, message).with_hint("Procedures are written in SQL: LANGUAGE SQL."))
}

/// A body in quotes of any kind.
fn text(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let token = parser.next_token();
    match token.token {
        Token::DollarQuotedString(quoted) => Ok(quoted.value),
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(text),
        _ => parser.expected("the statements in quotes, $$ … $$", token),
    }
}

/// A body between ATOMIC and END, the last word of the statement, as it stands in the text.
fn atomic(sql: &str, parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let first = parser.peek_token();
    let mut last = parser.next_token();
    while parser.peek_token().token != Token::EOF {
        last = parser.next_token();
    }
    let place = |token: &TokenWithSpan| error::position(sql, token.span.start.line, token.span.start.column);
    match (place(&first), place(&last)) {
        (Some(first), Some(end)) if is_word(&last.token, "END") => {
            Ok(sql.chars().skip(first - 1).take(end.saturating_sub(first)).collect())
        }
        _ => parser.expected("END after the statements", parser.peek_token()),
    }
}

/// The statements of a body. Errors 42601; 0A000 for those that no procedure may have; they have no place in the text around the body.
pub fn body(text: &str) -> SqlResult<Vec<StatementKind>> {
    let statements = parse(text).map_err(|error| error.without_position().with_detail("It is in the body of the procedure."))?;
    let checked = statements.into_iter().map(|statement| match statement.kind {
        kind @ (StatementKind::Query { .. } | StatementKind::Insert(_) | StatementKind::Update(_) | StatementKind::Delete(_))
            if statement.as_of.is_none() =>
        {
            Ok(kind)
        }
        kind => Err(SqlError::unsupported(format!("{} is not supported in a procedure", kind.name()))
            .with_hint("A procedure consists of SELECT, INSERT, UPDATE and DELETE, and runs as one transaction.")),
    });
    checked.collect()
}
