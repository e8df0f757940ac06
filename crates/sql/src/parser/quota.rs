//! Statements about quotas, none of which sqlparser knows:
//!
//! ```text
//!   CREATE QUOTA [IF NOT EXISTS] vm LIMIT 5000 [PARENT org] [PROTOCOL …] [OFFER …] [REALLOCATION …]
//!   ALTER QUOTA vm [SET] LIMIT 6000
//!   DROP QUOTA [IF EXISTS] vm
//! ```
//! Here they are only taken apart; whether a name, a number or a choice may be is for who runs them to say.

use super::statement::{QuotaCommand, QuotaDefinition, StatementKind};
use super::{fold, is_word};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// Reads a part of a statement.
type Reader<T> = fn(&mut Parser<'_>) -> Result<T, ParserError>;

/// A statement about quotas. `None`: it is another one, and the parser still stands before it.
pub fn quota(parser: &mut Parser<'_>) -> Option<Result<StatementKind, ParserError>> {
    let (verb, object) = (parser.peek_nth_token(0).token, parser.peek_nth_token(1).token);
    let verbs: [(&str, Reader<QuotaCommand>); 3] = [("CREATE", create), ("ALTER", alter), ("DROP", drop_quota)];
    let (_, rest) = verbs.into_iter().find(|(word, _)| is_word(&verb, word) && is_word(&object, "QUOTA"))?;
    parser.next_token();
    parser.next_token();
    Some(rest(parser).and_then(|command| match parser.peek_token().token {
        Token::EOF => Ok(StatementKind::Quota(command)),
        _ => parser.expected("end of statement", parser.peek_token()),
    }))
}

fn create(parser: &mut Parser<'_>) -> Result<QuotaCommand, ParserError> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let mut made = QuotaDefinition { if_not_exists, name: name(parser)?, ..QuotaDefinition::default() };
    let mut limit = None;
    loop {
        let clause = parser.next_token();
        let (slot, read): (_, Reader<String>) = match &clause.token {
            Token::EOF => break,
            word if is_word(word, "LIMIT") => (&mut limit, number),
            word if is_word(word, "PARENT") => (&mut made.parent, name),
            word if is_word(word, "PROTOCOL") => (&mut made.protocol, name),
            word if is_word(word, "OFFER") => (&mut made.offer, name),
            word if is_word(word, "REALLOCATION") => (&mut made.reallocation, name),
            _ => return parser.expected("LIMIT, PARENT, PROTOCOL, OFFER or REALLOCATION", clause),
        };
        if slot.is_some() {
            return parser.expected("each clause once", clause);
        }
        *slot = Some(read(parser)?);
    }
    match limit {
        Some(limit) => Ok(QuotaCommand::Create(QuotaDefinition { limit, ..made })),
        None => parser.expected("LIMIT and a number of tokens", parser.peek_token()),
    }
}

fn alter(parser: &mut Parser<'_>) -> Result<QuotaCommand, ParserError> {
    let name = name(parser)?;
    let _ = parser.parse_keyword(Keyword::SET);
    parser.expect_keyword_is(Keyword::LIMIT)?;
    Ok(QuotaCommand::SetLimit { name, limit: number(parser)? })
}

fn drop_quota(parser: &mut Parser<'_>) -> Result<QuotaCommand, ParserError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    Ok(QuotaCommand::Drop { name: name(parser)?, if_exists })
}

fn name(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    parser.parse_identifier().map(|ident| fold(&ident))
}

/// A number, with its sign if it has one.
fn number(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let sign = if parser.consume_token(&Token::Minus) { "-" } else { "" };
    let token = parser.next_token();
    match &token.token {
        Token::Number(digits, _) => Ok(format!("{sign}{digits}")),
        _ => parser.expected("a number of tokens", token),
    }
}
