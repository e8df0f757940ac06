//! SQL text to statements.
//!
//! The grammar is sqlparser's for PostgreSQL. What it lacks is cut out at the level of tokens first: several statements
//! are separated, `AS OF SYSTEM TIME '…'` is taken out of the statement that it qualifies, `ALTER DATABASE name` off the
//! SET or RESET that follows it, and `CREATE DATABASE … WITH`, `CREATE PROCEDURE` and the statements about sequences and quotas are read here.
//! Errors carry the place in the text, in characters, as clients expect it.

mod classify;
mod columns;
mod dialect;
mod error;
mod explain;
mod ident;
mod locks;
pub(crate) mod names;
mod nesting;
mod numbers;
mod procedure;
mod quota;
mod relations;
mod sequence;
mod statement;
mod tokens;

pub use columns::{columns_named, rename_column, without_table};
pub use dialect::Postgres;
pub use ident::{fold, quoted, unqualified};
pub use nesting::too_complex;
pub use numbers::{
    NumberFunction, calls, calls_in_queries, calls_named, constant_text, names_sequence, next_number, plain_arguments, replace_calls,
    sequences_named, set_calls, spelt, with_sequence_renamed,
};
pub use procedure::body;
pub use statement::{
    AccessMode, CopyFormat, CopyFrom, CopyKind, Create, Explain, IdentityChange, ProcedureDefinition, QuotaCommand, QuotaDefinition,
    SequenceClause, SequenceCommand, Statement, StatementKind, Transaction,
};
pub use tokens::{TokenCall, token_call};

use crate::error::{SqlError, SqlResult};
use crate::stack::on_large_stack;
use datafusion::sql::sqlparser::ast::{DataType, Expr, Statement as Sql};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

/// The longest text of statements, in bytes.
pub const SQL_BYTES_MAX: usize = 4 << 20;
/// The most statements in one text.
pub const STATEMENTS_MAX: usize = 1_000;
/// The deepest nesting of expressions and subqueries, as the parser counts it; see [`nesting`] for what it does not count.
const NESTING_MAX: usize = 64;

/// The statements of `sql`, in order; empty ones left out.
pub fn parse(sql: &str) -> SqlResult<Vec<Statement>> {
    on_large_stack(|| parse_here(sql))
}

/// The same on the stack there is.
fn parse_here(sql: &str) -> SqlResult<Vec<Statement>> {
    if sql.len() > SQL_BYTES_MAX {
        return Err(SqlError::too_large(format!("the text of statements is longer than {SQL_BYTES_MAX} bytes"))
            .with_hint("Send values as parameters or by COPY, or split the text."));
    }
    let tokens = Tokenizer::new(&Postgres, sql).tokenize_with_location().map_err(|error| error::at(sql, error.location, error.message))?;
    let mut statements = Vec::new();
    for tokens in procedure::split(&tokens) {
        if tokens.iter().all(|token| matches!(token.token, Token::Whitespace(_))) {
            continue;
        }
        if statements.len() == STATEMENTS_MAX {
            return Err(SqlError::too_large(format!("more than {STATEMENTS_MAX} statements in one text")));
        }
        nesting::check(tokens)?;
        statements.push(parse_one(sql, tokens.to_vec())?);
    }
    Ok(statements)
}

fn parse_one(sql: &str, mut tokens: Vec<TokenWithSpan>) -> SqlResult<Statement> {
    let as_of = take_as_of(&mut tokens);
    let is_bare = !tokens.iter().any(|token| token.token == Token::LParen);
    sequence::order_identity_options(&mut tokens);
    let mut parser = parser(tokens.clone());
    let read_here = classify::database(&mut parser)
        .or_else(|| classify::maintenance(&mut parser))
        .or_else(|| classify::constraints(&mut parser))
        .or_else(|| sequence::sequence(&mut parser))
        .or_else(|| sequence::identity(&mut parser).map(Ok))
        .or_else(|| quota::quota(&mut parser));
    let read_here = read_here.map(|kind| kind.map_err(|error| error::from_parser(sql, error)));
    let kind = match read_here.or_else(|| procedure::procedure(sql, &mut parser)) {
        Some(kind) => kind?,
        None => {
            let mut parser = self::parser(tokens);
            let database = classify::altered_database(&mut parser).transpose().map_err(|error| error::from_parser(sql, error))?;
            let parsed = parser.parse_statement().and_then(|statement| match parser.peek_token().token {
                Token::EOF => Ok(statement),
                _ => parser.expected("end of statement", parser.peek_token()),
            });
            let parsed = parsed.map_err(|error| error::from_parser(sql, error))?;
            relations::check(&parsed)?;
            if is_bare && matches!(&parsed, Sql::CreateTable(table) if table.columns.is_empty() && table.query.is_none()) {
                return Err(SqlError::syntax("syntax error at end of input").with_hint("Name the columns of the table in brackets."));
            }
            let kind = classify::classify(parsed)?;
            match database {
                Some(name) => classify::alter_database(name, kind)?,
                None => kind,
            }
        }
    };
    if as_of.is_some() && !kind.may_be_as_of() {
        return Err(SqlError::syntax("AS OF SYSTEM TIME fits only SELECT and BEGIN"));
    }
    Ok(Statement { kind, as_of })
}

fn parser(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&Postgres).with_recursion_limit(NESTING_MAX).with_tokens_with_locations(tokens)
}

/// The expression that `text` is, as the catalog has it.
pub fn expression(text: &str) -> Result<Expr, ParserError> {
    let mut parser = Parser::new(&Postgres).with_recursion_limit(NESTING_MAX).try_with_sql(text)?;
    let expr = parser.parse_expr()?;
    match parser.peek_token().token {
        Token::EOF => Ok(expr),
        _ => parser.expected("end of expression", parser.peek_token()),
    }
}

/// The type that `text` names.
pub fn data_type(text: &str) -> Result<DataType, ParserError> {
    Parser::new(&Postgres).try_with_sql(text)?.parse_data_type()
}

/// The text of an expression for the catalog to keep. Error 0A000 for one that would be read as another: the printer of the parser's trees does
/// not quote all that it should.
pub fn kept(expr: &Expr) -> SqlResult<String> {
    let text = expr.to_string();
    if expression(&text).is_ok_and(|read| read == *expr) {
        return Ok(text);
    }
    Err(SqlError::unsupported(format!("the expression {text} cannot be kept"))
        .with_hint("Write a quote that stands beside another as E'\\x27', and put a second sign in brackets."))
}

/// Takes `AS OF SYSTEM TIME '…'` out of a statement and returns the text between the quotes.
fn take_as_of(tokens: &mut Vec<TokenWithSpan>) -> Option<String> {
    let dark: Vec<usize> = (0..tokens.len()).filter(|&index| !matches!(tokens[index].token, Token::Whitespace(_))).collect();
    let found = dark.windows(5).find_map(|window| {
        let [as_word, of, system, time, text] = window else { return None };
        let words = is_word(&tokens[*as_word].token, "AS")
            && is_word(&tokens[*of].token, "OF")
            && is_word(&tokens[*system].token, "SYSTEM")
            && is_word(&tokens[*time].token, "TIME");
        match &tokens[*text].token {
            Token::SingleQuotedString(text_value) if words => Some((*as_word, *text, text_value.clone())),
            _ => None,
        }
    })?;
    let (first, last, text) = found;
    tokens.drain(first..=last);
    Some(text)
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(word))
}

/// True if the statement begins with these keywords; then the parser stands after them.
fn begins_with(parser: &mut Parser<'_>, keywords: &[Keyword]) -> bool {
    parser.parse_keywords(keywords)
}

#[cfg(test)]
mod deep_tests;
#[cfg(test)]
mod tests;
