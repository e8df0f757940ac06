//! Bounds how deep a statement is, or each of those in a procedure, before it is parsed.
//!
//! A statement is parsed into a tree, and trees are parsed, walked, copied and dropped by recursion. The parser's own limit knows some of
//! its rules only: `INTERVAL INTERVAL …` and `JSON_TABLE(… COLUMNS(NESTED …` pass it by, and a chain such as `1 + 1 + …` is a tree as
//! deep as it is long. So depth is counted here, over the tokens, whatever the grammar makes of them.
//!
//! ```text
//!   SELECT a, b + c * (d - INTERVAL '1 day') FROM t
//!             ▲   ▲ ▲    ▲ ▲
//!             1   2 3    4 5      the comma ends what stands before it, a closing bracket what stands in it
//! ```
//! No rule goes deeper without a bracket, a keyword or an operator, and none is left but by a comma, a closing bracket, UNION and its like,
//! or the end. (UNION itself makes a chain, so it is counted up to the next comma.)
//!
//! The parser tries some rules one after the other: an argument may be the name of one, and `CAST(…` a call of a function of that name.
//! Within brackets that follow a word each token is read up to three times as often as around them, so that is bounded as well.
//!
//! Invariant: no tree is deeper than [`DEPTH_MAX`] times what one keyword makes of it. [`STACK_BYTES`](crate::stack::STACK_BYTES) is for that.

use crate::error::{SqlError, SqlResult, SqlState};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Keywords, operators and opening brackets that are under way at one place, at the most.
pub const DEPTH_MAX: usize = 1_500;
/// Brackets that are open at one place, at the most.
pub const BRACKETS_MAX: usize = 200;
/// How often tokens are read by the parser, at the most: each once, and three times as often by each bracket around it that follows a word.
pub const READS_MAX: u64 = 6_000_000;

/// What is under way between two brackets.
#[derive(Default)]
struct Level {
    /// Set operations since the last comma.
    unions: usize,
    /// Keywords, operators and brackets since the last comma or set operation.
    operators: usize,
    /// True if its bracket follows a word.
    called: bool,
}

/// Refuses a statement that is too deep. Error 54001.
pub fn check(tokens: &[TokenWithSpan]) -> SqlResult<()> {
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    // The sum over all levels.
    let mut depth = 0_usize;
    let (mut calls, mut reads, mut after_word) = (0_u32, 0_u64, false);
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        let called = std::mem::replace(&mut after_word, matches!(token.token, Token::Word(_)));
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                level.operators += 1;
                depth += 1;
                outer.push(std::mem::replace(&mut level, Level { called, ..Level::default() }));
                calls += u32::from(called);
                if outer.len() > BRACKETS_MAX {
                    return Err(too_complex(format!("more than {BRACKETS_MAX} brackets are open at once"))
                        .with_hint("Split the statement, or name the inner queries with WITH."));
                }
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                // Where more are closed than were opened, the parser will say so.
                if let Some(around) = outer.pop() {
                    depth -= level.unions + level.operators;
                    calls -= u32::from(level.called);
                    level = around;
                }
            }
            Token::Comma | Token::SemiColon => {
                depth -= level.unions + level.operators;
                (level.unions, level.operators) = (0, 0);
            }
            token if is_set_operation(token) => {
                depth = depth + 1 - level.operators;
                (level.unions, level.operators) = (level.unions + 1, 0);
            }
            token if is_keyword_or_operator(token) => {
                level.operators += 1;
                depth += 1;
            }
            _ => {}
        }
        reads = reads.saturating_add(3_u64.saturating_pow(calls));
        if reads > READS_MAX {
            return Err(too_complex("functions are called within calls too deeply, or too much is written within them")
                .with_hint("Split the statement, or name the inner values with WITH."));
        }
        if depth > DEPTH_MAX {
            return Err(too_complex(format!(
                "more than {DEPTH_MAX} keywords and operators without a comma or a closing bracket between them"
            ))
            .with_hint("Write `x IN (a, b, …)` instead of `x = a OR x = b OR …`, or split the statement."));
        }
    }
    Ok(())
}

/// 54001.
pub fn too_complex(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::StatementTooComplex, message)
}

fn is_set_operation(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.keyword, Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS))
}

fn is_keyword_or_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.keyword != Keyword::NoKeyword,
        Token::Number(..) | Token::Char(_) | Token::Placeholder(_) | Token::Period | Token::EOF => false,
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::HexStringLiteral(_) | Token::DollarQuotedString(_) => false,
        _ => true,
    }
}
