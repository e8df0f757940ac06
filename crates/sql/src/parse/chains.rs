//! Bounds the chains of operators in a statement, or in each of those in a procedure: `a OR b OR c …`, `1 + 1 + …`, `… UNION …`,
//! `x::int::int`.
//!
//! A chain is parsed into a tree as deep as it is long, and trees are walked, copied and dropped by recursion. The parser's
//! own limit counts only what is nested in the text.
//!
//! Invariant: no expression that is let through is deeper than the stack of a thread that serves clients allows.

use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Operators at the most between two commas or parentheses of the same level.
pub const OPERATORS_MAX: usize = 1_000;

/// Refuses a statement with a longer chain.
pub fn check(tokens: &[TokenWithSpan]) -> SqlResult<()> {
    let mut levels = vec![0_usize];
    for token in tokens {
        match &token.token {
            Token::LParen => levels.push(0),
            Token::RParen => {
                levels.pop();
                // More are closed than were opened: the parser will say so.
                if levels.is_empty() {
                    levels.push(0);
                }
            }
            Token::Comma | Token::SemiColon => *innermost(&mut levels) = 0,
            token if is_operator(token) => {
                let operators = innermost(&mut levels);
                *operators += 1;
                if *operators > OPERATORS_MAX {
                    return Err(SqlError::too_large(format!("more than {OPERATORS_MAX} operators in one chain"))
                        .with_hint("Write `x IN (a, b, …)` instead of `x = a OR x = b OR …`, or split the statement."));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn innermost(levels: &mut [usize]) -> &mut usize {
    levels.last_mut().expect("there is always a level")
}

fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::IN
                | Keyword::IS
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::SIMILAR
                | Keyword::BETWEEN
                | Keyword::COLLATE
                | Keyword::AT
                | Keyword::OPERATOR
                | Keyword::OVERLAPS
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::JOIN
        ),
        Token::Whitespace(_) | Token::Number(..) | Token::Char(_) | Token::Placeholder(_) | Token::Period | Token::EOF => false,
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::HexStringLiteral(_) | Token::DollarQuotedString(_) => false,
        _ => true,
    }
}
