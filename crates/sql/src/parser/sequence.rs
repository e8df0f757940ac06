//! CREATE and ALTER SEQUENCE, of which sqlparser reads only the first, and its clauses in one order only.
//!
//! ```text
//!   CREATE SEQUENCE [IF NOT EXISTS] s [AS bigint] [START [WITH] 1] [INCREMENT [BY] 1] [MINVALUE 1 | NO MINVALUE] [MAXVALUE 9 | NO MAXVALUE]
//!                                     [CACHE 100] [[NO] CYCLE] [OWNED BY t.c | OWNED BY NONE]
//!   ALTER SEQUENCE [IF EXISTS] s      the same, RESTART [[WITH] 1], or RENAME TO r, OWNER TO u
//!   ALTER TABLE t ALTER c             ADD GENERATED … AS IDENTITY [(… SEQUENCE NAME s)], SET GENERATED …, RESTART [[WITH] 1], DROP IDENTITY
//! ```

use super::statement::{IdentityChange, SequenceClause, SequenceCommand, StatementKind};
use super::{begins_with, fold, is_word};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// A statement about a sequence. `None`: it is another one, and the parser still stands before it.
pub fn sequence(parser: &mut Parser<'_>) -> Option<Result<StatementKind, ParserError>> {
    let command = if begins_with(parser, &[Keyword::CREATE, Keyword::SEQUENCE]) {
        create(parser)
    } else if begins_with(parser, &[Keyword::ALTER, Keyword::SEQUENCE]) {
        alter(parser)
    } else {
        return None;
    };
    Some(command.and_then(|command| match parser.peek_token().token {
        Token::EOF => Ok(StatementKind::Sequence(command)),
        _ => parser.expected("a clause of a sequence", parser.peek_token()),
    }))
}

/// ALTER TABLE of one identity column. `None`: it is another statement, and the parser still stands before it.
pub fn identity(parser: &mut Parser<'_>) -> Option<StatementKind> {
    parser.maybe_parse(identity_altered).ok().flatten()
}

fn identity_altered(parser: &mut Parser<'_>) -> Result<StatementKind, ParserError> {
    parser.expect_keywords(&[Keyword::ALTER, Keyword::TABLE])?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let _ = parser.parse_keyword(Keyword::ONLY);
    let table = parser.parse_object_name(false)?;
    parser.expect_keyword_is(Keyword::ALTER)?;
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let column = fold(&parser.parse_identifier()?);
    let change = match parser.expect_one_of_keywords(&[Keyword::ADD, Keyword::SET, Keyword::RESTART, Keyword::DROP])? {
        Keyword::ADD => {
            parser.expect_keyword_is(Keyword::GENERATED)?;
            let always = always(parser)?;
            parser.expect_keywords(&[Keyword::AS, Keyword::IDENTITY])?;
            let mut said = Vec::new();
            if parser.consume_token(&Token::LParen) {
                said = clauses(parser)?;
                parser.expect_token(&Token::RParen)?;
            }
            IdentityChange::Add { always, clauses: said }
        }
        Keyword::SET => {
            parser.expect_keyword_is(Keyword::GENERATED)?;
            IdentityChange::SetGenerated(always(parser)?)
        }
        Keyword::RESTART => IdentityChange::Restart(restart(parser)?),
        _ => {
            parser.expect_keyword_is(Keyword::IDENTITY)?;
            IdentityChange::Drop { if_exists: parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]) }
        }
    };
    match parser.peek_token().token {
        Token::EOF => Ok(StatementKind::AlterIdentity { table, if_exists, column, change }),
        _ => parser.expected("end of statement", parser.peek_token()),
    }
}

/// ALWAYS, or BY DEFAULT.
fn always(parser: &mut Parser<'_>) -> Result<bool, ParserError> {
    if parser.parse_keyword(Keyword::ALWAYS) {
        return Ok(true);
    }
    parser.expect_keywords(&[Keyword::BY, Keyword::DEFAULT]).map(|()| false)
}

/// The number after RESTART, if there is one.
fn restart(parser: &mut Parser<'_>) -> Result<Option<String>, ParserError> {
    let says = parser.parse_keyword(Keyword::WITH) || matches!(parser.peek_token().token, Token::Number(..) | Token::Minus);
    says.then(|| number(parser)).transpose()
}

fn create(parser: &mut Parser<'_>) -> Result<SequenceCommand, ParserError> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    Ok(SequenceCommand::Create { if_not_exists, name: parser.parse_object_name(false)?, clauses: clauses(parser)? })
}

fn alter(parser: &mut Parser<'_>) -> Result<SequenceCommand, ParserError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        return Ok(SequenceCommand::Rename { if_exists, name, to: parser.parse_object_name(false)? });
    }
    if parser.parse_keywords(&[Keyword::OWNER, Keyword::TO]) {
        // There is nobody else that it could belong to.
        parser.parse_identifier()?;
        return Ok(SequenceCommand::Alter { if_exists, name, clauses: Vec::new() });
    }
    let clauses = clauses(parser)?;
    if clauses.is_empty() {
        return parser.expected("a clause of a sequence", parser.peek_token());
    }
    Ok(SequenceCommand::Alter { if_exists, name, clauses })
}

fn clauses(parser: &mut Parser<'_>) -> Result<Vec<SequenceClause>, ParserError> {
    let mut clauses = Vec::new();
    while let Some(clause) = clause(parser)? {
        clauses.push(clause);
    }
    Ok(clauses)
}

fn clause(parser: &mut Parser<'_>) -> Result<Option<SequenceClause>, ParserError> {
    let word = parser.peek_token().token;
    let known = ["AS", "START", "RESTART", "INCREMENT", "MINVALUE", "MAXVALUE", "CACHE", "CYCLE", "NO", "SEQUENCE", "OWNED"];
    let Some(known) = known.into_iter().find(|known| is_word(&word, known)) else { return Ok(None) };
    parser.next_token();
    Ok(Some(match known {
        "AS" => SequenceClause::Type(parser.parse_data_type()?),
        "START" => {
            let _ = parser.parse_keyword(Keyword::WITH);
            SequenceClause::Start(number(parser)?)
        }
        "RESTART" => SequenceClause::Restart(restart(parser)?),
        "INCREMENT" => {
            let _ = parser.parse_keyword(Keyword::BY);
            SequenceClause::Increment(number(parser)?)
        }
        "MINVALUE" => SequenceClause::Min(Some(number(parser)?)),
        "MAXVALUE" => SequenceClause::Max(Some(number(parser)?)),
        "CACHE" => SequenceClause::Cache(number(parser)?),
        "CYCLE" => SequenceClause::Cycle(true),
        "SEQUENCE" => {
            parser.expect_keyword_is(Keyword::NAME)?;
            SequenceClause::Name(parser.parse_object_name(false)?)
        }
        "NO" => match parser.expect_one_of_keywords(&[Keyword::MINVALUE, Keyword::MAXVALUE, Keyword::CYCLE])? {
            Keyword::MINVALUE => SequenceClause::Min(None),
            Keyword::MAXVALUE => SequenceClause::Max(None),
            _ => SequenceClause::Cycle(false),
        },
        _ => {
            parser.expect_keyword_is(Keyword::BY)?;
            let none = parser.parse_keyword(Keyword::NONE);
            SequenceClause::OwnedBy(if none { None } else { Some(parser.parse_object_name(false)?) })
        }
    }))
}

/// Puts the options of identity columns, `GENERATED … AS IDENTITY (…)`, into the one order in which sqlparser reads them.
pub fn order_identity_options(tokens: &mut [TokenWithSpan]) {
    const ORDER: [&str; 6] = ["INCREMENT", "MINVALUE", "MAXVALUE", "START", "CACHE", "CYCLE"];
    let rank = |token: &Token| ORDER.iter().position(|word| is_word(token, word));
    let dark: Vec<usize> = (0..tokens.len()).filter(|&place| !matches!(tokens[place].token, Token::Whitespace(_))).collect();
    for window in dark.windows(4) {
        let [generated, as_word, identity, open] = *window else { continue };
        let generates = ["ALWAYS", "DEFAULT"].iter().any(|word| is_word(&tokens[generated].token, word));
        let begins = generates && is_word(&tokens[as_word].token, "AS") && is_word(&tokens[identity].token, "IDENTITY");
        if !begins || tokens[open].token != Token::LParen {
            continue;
        }
        let Some(end) = tokens[open..].iter().position(|token| token.token == Token::RParen) else { continue };
        let inside = &mut tokens[open + 1..open + end];
        // Each clause with the place that it has in that order; a NO belongs to what follows.
        let mut clauses: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
        let mut negated = Vec::new();
        for token in inside.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))) {
            match (rank(&token.token), clauses.last_mut()) {
                (Some(rank), _) => {
                    negated.push(token.clone());
                    clauses.push((rank, std::mem::take(&mut negated)));
                }
                (None, _) if is_word(&token.token, "NO") => negated.push(token.clone()),
                (None, Some((_, clause))) => clause.push(token.clone()),
                // It is no such list: let it be read as it stands.
                (None, None) => negated.push(token.clone()),
            }
        }
        clauses.sort_by_key(|(rank, _)| *rank);
        let ordered = clauses.into_iter().flat_map(|(_, clause)| clause).chain(negated);
        let places: Vec<usize> = (0..inside.len()).filter(|&place| !matches!(inside[place].token, Token::Whitespace(_))).collect();
        for (place, token) in places.into_iter().zip(ordered.collect::<Vec<_>>()) {
            inside[place] = token;
        }
    }
}

/// A number, with its sign if it has one.
fn number(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let sign = if parser.consume_token(&Token::Minus) { "-" } else { "" };
    let token = parser.next_token();
    match &token.token {
        Token::Number(digits, _) => Ok(format!("{sign}{digits}")),
        _ => parser.expected("a number", token),
    }
}
