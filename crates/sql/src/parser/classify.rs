//! From sqlparser's tree of a statement to [`StatementKind`]; what Rhumb does not do is refused here, by name.

use super::numbers::{self, NumberFunction};
use super::statement::{AccessMode, CopyFormat, CopyFrom, CopyKind, Create, StatementKind, Transaction};
use super::{begins_with, explain, fold, is_word, locks, tokens};
use crate::error::{SqlError, SqlResult, SqlState};
use datafusion::sql::sqlparser::ast::{self, Set, Statement as Sql};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// CREATE DATABASE, which sqlparser reads without its options. `None`: it is another statement.
pub fn database(parser: &mut Parser<'_>) -> Option<Result<StatementKind, ParserError>> {
    begins_with(parser, &[Keyword::CREATE, Keyword::DATABASE]).then(|| create_database(parser))
}

fn create_database(parser: &mut Parser<'_>) -> Result<StatementKind, ParserError> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_identifier().map(|ident| fold(&ident))?;
    let mut options = Vec::new();
    if parser.parse_keyword(Keyword::WITH) && parser.consume_token(&Token::LParen) {
        options = parser.parse_comma_separated(|parser| {
            let option = parser.parse_identifier()?.value.to_lowercase();
            parser.expect_token(&Token::Eq)?;
            Ok((option, option_value(parser)?))
        })?;
        parser.expect_token(&Token::RParen)?;
    }
    match parser.peek_token().token {
        Token::EOF => Ok(StatementKind::Create(Create::Database { name, if_not_exists, options })),
        _ => parser.expected("WITH (protocol = '…')", parser.peek_token()),
    }
}

/// The value of an option: a text, a word, or a number.
fn option_value(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let sign = if parser.consume_token(&Token::Minus) { "-" } else { "" };
    match parser.peek_token().token {
        Token::Number(number, _) => {
            parser.next_token();
            Ok(format!("{sign}{number}"))
        }
        // A word that SQL knows as one of its own, too.
        Token::Word(_) => parser.parse_identifier().map(|ident| ident.value),
        _ => parser.parse_literal_string(),
    }
}

/// SET CONSTRAINTS, which sqlparser takes for a setting. `None`: it is another statement.
pub fn constraints(parser: &mut Parser<'_>) -> Option<Result<StatementKind, ParserError>> {
    let is_it = is_word(&parser.peek_nth_token(0).token, "SET") && is_word(&parser.peek_nth_token(1).token, "CONSTRAINTS");
    is_it.then(|| {
        parser.next_token();
        parser.next_token();
        let names = if parser.parse_keyword(Keyword::ALL) {
            Vec::new()
        } else {
            let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
            names.iter().filter_map(|name| name.0.last()).filter_map(ast::ObjectNamePart::as_ident).map(fold).collect()
        };
        let deferred = parser.expect_one_of_keywords(&[Keyword::DEFERRED, Keyword::IMMEDIATE])? == Keyword::DEFERRED;
        match parser.peek_token().token {
            Token::EOF => Ok(StatementKind::Transaction(Transaction::Constraints { names, deferred })),
            _ => parser.expected("end of statement", parser.peek_token()),
        }
    })
}

/// VACUUM and ANALYZE, of which sqlparser reads other dialects': no dead rows wait for a command, and there are no statistics. `None`: it is
/// another statement.
pub fn maintenance(parser: &mut Parser<'_>) -> Option<Result<StatementKind, ParserError>> {
    let tag = [(Keyword::VACUUM, "VACUUM"), (Keyword::ANALYZE, "ANALYZE")].into_iter().find(|(word, _)| begins_with(parser, &[*word]));
    tag.map(|(_, tag)| maintained(parser).map(|()| StatementKind::Nothing(tag)))
}

fn maintained(parser: &mut Parser<'_>) -> Result<(), ParserError> {
    let in_brackets = |parser: &mut Parser<'_>| {
        if parser.consume_token(&Token::LParen) {
            parser.parse_comma_separated(|parser| {
                parser.parse_identifier().and_then(|_| parser.maybe_parse(|parser| parser.parse_identifier()))
            })?;
            parser.expect_token(&Token::RParen)?;
        }
        Ok::<(), ParserError>(())
    };
    while parser.parse_one_of_keywords(&[Keyword::FULL, Keyword::FREEZE, Keyword::VERBOSE, Keyword::ANALYZE]).is_some() {}
    in_brackets(parser)?;
    if parser.peek_token().token != Token::EOF {
        parser.parse_comma_separated(|parser| parser.parse_object_name(false).and_then(|_| in_brackets(parser)))?;
    }
    match parser.peek_token().token {
        Token::EOF => Ok(()),
        _ => parser.expected("end of statement", parser.peek_token()),
    }
}

/// Takes `ALTER DATABASE name` off the front of a statement, which then goes on as SET and RESET of a session do.
pub fn altered_database(parser: &mut Parser<'_>) -> Option<Result<String, ParserError>> {
    begins_with(parser, &[Keyword::ALTER, Keyword::DATABASE]).then(|| parser.parse_identifier().map(|ident| fold(&ident)))
}

/// The statement that does to the database `name` what `kind` does to a session.
pub fn alter_database(name: String, kind: StatementKind) -> SqlResult<StatementKind> {
    match kind {
        StatementKind::Set { name: setting, value, local: false } => {
            Ok(StatementKind::AlterDatabase { name, setting: Some(setting), value })
        }
        StatementKind::Reset(setting) => Ok(StatementKind::AlterDatabase { name, setting, value: None }),
        _ => Err(SqlError::syntax("ALTER DATABASE takes SET and RESET of a setting only")),
    }
}

/// What `statement` is to the session.
pub fn classify(statement: Sql) -> SqlResult<StatementKind> {
    let tokens = tokens::check(&statement)?;
    let for_update = locks::asked_for(&statement)?;
    Ok(match statement {
        Sql::Query(query) if tokens => StatementKind::Tokens(query),
        Sql::Query(query) => match set_config(&query)? {
            Some(kind) => kind,
            None if numbers::calls(&query, |function| matches!(function, NumberFunction::Next | NumberFunction::Set)) => {
                let mut query = query;
                query.locks.clear();
                StatementKind::Numbers(query)
            }
            None => query_kind(query, for_update),
        },
        Sql::Explain { analyze, statement, format, options, query_plan: false, estimate: false, .. } => {
            explain::options(analyze, options.unwrap_or_default(), format)?.of(classify(*statement)?)?
        }
        Sql::Insert(insert) => StatementKind::Insert(Box::new(insert)),
        Sql::Update(update) => StatementKind::Update(Box::new(update)),
        Sql::Delete(delete) => StatementKind::Delete(Box::new(delete)),
        Sql::Truncate(truncate) => StatementKind::Truncate {
            cascade: truncate.cascade == Some(ast::CascadeOption::Cascade),
            restart: truncate.identity == Some(ast::TruncateIdentityOption::Restart),
            names: truncate.table_names.into_iter().map(|table| table.name).collect(),
        },
        Sql::CreateTable(table) => StatementKind::Create(Create::Table(Box::new(table))),
        Sql::CreateIndex(index) => StatementKind::Create(Create::Index(Box::new(index))),
        Sql::AlterTable(alter) => StatementKind::AlterTable(Box::new(alter)),
        Sql::AlterIndex { name, operation: ast::AlterIndexOperation::RenameIndex { index_name } } => {
            StatementKind::RenameIndex { name, to: index_name }
        }
        Sql::Drop { object_type, if_exists, names, cascade, .. } => {
            use ast::ObjectType::{Database, Index, Sequence, Table};
            if !matches!(object_type, Table | Index | Sequence | Database) {
                return Err(SqlError::unsupported(format!("DROP {object_type} is not supported")));
            }
            StatementKind::Drop { object: object_type, if_exists, names, cascade }
        }
        Sql::DropProcedure { if_exists, proc_desc, .. } => {
            let types = |arguments: Vec<ast::OperateFunctionArg>| arguments.into_iter().map(|argument| argument.data_type).collect();
            let procedures = proc_desc.into_iter().map(|procedure| (procedure.name, procedure.args.map(types)));
            StatementKind::DropProcedure { if_exists, procedures: procedures.collect() }
        }
        Sql::Call(function) => call(function)?,
        Sql::StartTransaction { modes, modifier: None, .. } => StatementKind::Transaction(Transaction::Begin(access(&modes))),
        Sql::Commit { chain: false, modifier: None, .. } => StatementKind::Transaction(Transaction::Commit),
        Sql::Rollback { chain: false, savepoint: None } => StatementKind::Transaction(Transaction::Rollback),
        Sql::Commit { .. } | Sql::Rollback { savepoint: None, .. } => return Err(SqlError::unsupported("AND CHAIN is not supported")),
        Sql::Savepoint { name } => StatementKind::Transaction(Transaction::Savepoint(fold(&name))),
        Sql::Rollback { savepoint: Some(name), .. } => StatementKind::Transaction(Transaction::RollbackTo(fold(&name))),
        Sql::ReleaseSavepoint { name } => StatementKind::Transaction(Transaction::Release(fold(&name))),
        Sql::Copy { source, to, target, options, legacy_options, .. } => {
            StatementKind::Copy(copy_kind(source, to, target, options, legacy_options)?)
        }
        other => session_kind(other)?,
    })
}

/// What concerns the session alone: its settings, its prepared statements.
fn session_kind(statement: Sql) -> SqlResult<StatementKind> {
    Ok(match statement {
        Sql::Set(set) => set_kind(set)?,
        Sql::Reset(reset) => StatementKind::Reset(match reset.reset {
            ast::Reset::ALL => None,
            ast::Reset::ConfigurationParameter(name) => Some(setting_name(&name)),
        }),
        Sql::ShowVariable { variable } => show_kind(&variable),
        Sql::Discard { object_type: ast::DiscardObject::ALL } => StatementKind::Discard,
        Sql::Discard { object_type: ast::DiscardObject::SEQUENCES } => StatementKind::DiscardSequences,
        // Plans are kept as long as they fit, and there are no temporary tables.
        Sql::Discard { object_type: ast::DiscardObject::PLANS } => StatementKind::Nothing("DISCARD PLANS"),
        Sql::Discard { object_type: ast::DiscardObject::TEMP } => StatementKind::Nothing("DISCARD TEMP"),
        // There are no notifications and no cursors.
        Sql::UNLISTEN { .. } => StatementKind::Nothing("UNLISTEN"),
        Sql::Close { cursor: ast::CloseCursor::All } => StatementKind::Nothing("CLOSE CURSOR ALL"),
        Sql::Prepare { name, data_types, statement } => prepare(&name, data_types, *statement)?,
        Sql::Execute { name: Some(name), parameters, immediate: false, into, using, output: false, default: false, .. }
            if into.is_empty() && using.is_empty() =>
        {
            let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
                return Err(SqlError::syntax("EXECUTE takes a plain name"));
            };
            StatementKind::Execute { name: fold(name), arguments: parameters }
        }
        Sql::Deallocate { name, .. } => {
            let all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
            StatementKind::Deallocate((!all).then(|| fold(&name)))
        }
        other => {
            let text = other.to_string();
            let words: Vec<&str> = text.split_whitespace().take(2).collect();
            return Err(SqlError::unsupported(format!("{} is not supported", words.join(" "))));
        }
    })
}

fn prepare(name: &ast::Ident, types: Vec<ast::DataType>, statement: Sql) -> SqlResult<StatementKind> {
    let refused = || SqlError::syntax("PREPARE takes a SELECT, INSERT, UPDATE or DELETE");
    // Each that stands in another would be printed once more.
    if matches!(statement, Sql::Prepare { .. }) {
        return Err(refused());
    }
    let bytes = statement.to_string().len();
    let kind = classify(statement)?;
    if !kind.is_preparable() {
        return Err(refused());
    }
    Ok(StatementKind::Prepare { name: fold(name), types, statement: Box::new(kind), bytes })
}

fn call(function: ast::Function) -> SqlResult<StatementKind> {
    let ast::FunctionArguments::List(list) = function.args else {
        return Err(SqlError::syntax("CALL takes the name of a procedure and what it is given, in parentheses"));
    };
    let plain = list.duplicate_treatment.is_none() && list.clauses.is_empty() && function.over.is_none() && function.filter.is_none();
    let arguments = list.args.into_iter().map(|argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) if plain => Ok(value),
        other => Err(SqlError::unsupported(format!("{other} is not supported in CALL"))),
    });
    Ok(StatementKind::Call { name: function.name, arguments: arguments.collect::<SqlResult<_>>()? })
}

fn query_kind(mut query: Box<ast::Query>, for_update: bool) -> StatementKind {
    query.locks.clear();
    StatementKind::Query { query, for_update }
}

/// The one item of a select list that is a call of set_config(), as drivers write it: of constants.
fn set_config(query: &ast::Query) -> SqlResult<Option<StatementKind>> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else { return Ok(None) };
    let [ast::SelectItem::UnnamedExpr(expr)] = select.projection.as_slice() else { return Ok(None) };
    let ast::Expr::Function(ast::Function { name, args: ast::FunctionArguments::List(list), .. }) = expr else { return Ok(None) };
    if !matches!(setting_name(name).as_str(), "set_config" | "pg_catalog.set_config")
        || !select.from.is_empty()
        || select.selection.is_some()
    {
        return Ok(None);
    }
    let constant = |argument: &ast::FunctionArg| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value))) => Some(value.value.clone()),
        _ => None,
    };
    match list.args.iter().map(constant).collect::<Option<Vec<_>>>().as_deref() {
        Some([ast::Value::SingleQuotedString(name), ast::Value::SingleQuotedString(value), ast::Value::Boolean(local)]) => {
            Ok(Some(StatementKind::SetConfig { name: name.to_lowercase(), value: value.clone(), local: *local }))
        }
        _ => Err(SqlError::unsupported("set_config() takes two constant texts and true or false here").with_hint("Write SET.")),
    }
}

/// Every isolation level is served as serializable, which each of them allows.
fn access(modes: &[ast::TransactionMode]) -> AccessMode {
    modes
        .iter()
        .rev()
        .find_map(|mode| match mode {
            ast::TransactionMode::AccessMode(ast::TransactionAccessMode::ReadOnly) => Some(AccessMode::ReadOnly),
            ast::TransactionMode::AccessMode(ast::TransactionAccessMode::ReadWrite) => Some(AccessMode::ReadWrite),
            ast::TransactionMode::IsolationLevel(_) => None,
        })
        .unwrap_or_default()
}

fn setting_name(name: &ast::ObjectName) -> String {
    name.to_string().replace('"', "").to_lowercase()
}

fn set_kind(set: Set) -> SqlResult<StatementKind> {
    match set {
        Set::SingleAssignment { scope, variable, values, .. } => {
            let local = matches!(scope, Some(ast::ContextModifier::Local));
            let is_default = matches!(values.as_slice(), [ast::Expr::Identifier(ident)] if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"));
            let value = if is_default { None } else { Some(values.iter().map(value_text).collect::<SqlResult<Vec<_>>>()?.join(", ")) };
            Ok(StatementKind::Set { name: setting_name(&variable), value, local })
        }
        Set::SetTimeZone { local, value } => Ok(StatementKind::Set { name: "timezone".into(), value: Some(value_text(&value)?), local }),
        Set::SetNames { charset_name, .. } => {
            Ok(StatementKind::Set { name: "client_encoding".into(), value: Some(charset_name.value), local: false })
        }
        Set::SetTransaction { modes, snapshot: None, session } => Ok(StatementKind::Transaction(if session {
            Transaction::SessionCharacteristics(access(&modes))
        } else {
            Transaction::Characteristics(access(&modes))
        })),
        other => Err(SqlError::unsupported(format!("{other} is not supported"))),
    }
}

/// The text of a value in SET.
fn value_text(value: &ast::Expr) -> SqlResult<String> {
    match value {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Ok(text.clone()),
            other => Ok(other.to_string()),
        },
        ast::Expr::Identifier(ident) => Ok(ident.value.clone()),
        ast::Expr::UnaryOp { .. } => Ok(value.to_string()),
        other => Err(SqlError::new(SqlState::InvalidParameterValue, format!("{other} is no value of a setting"))),
    }
}

fn show_kind(variable: &[ast::Ident]) -> StatementKind {
    let words: Vec<String> = variable.iter().map(|ident| ident.value.to_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["regions"] => StatementKind::ShowRegions,
        ["quotas"] => StatementKind::ShowQuotas,
        ["time", "zone"] => StatementKind::Show("timezone".into()),
        ["transaction", "isolation", "level"] => StatementKind::Show("transaction_isolation".into()),
        // `a.b` arrives as the words `a`, `.` and `b`, or as `a` and `b`.
        words => StatementKind::Show(words.iter().filter(|word| **word != ".").copied().collect::<Vec<_>>().join(".")),
    }
}

fn copy_kind(
    source: ast::CopySource,
    to: bool,
    target: ast::CopyTarget,
    options: Vec<ast::CopyOption>,
    legacy: Vec<ast::CopyLegacyOption>,
) -> SqlResult<CopyFrom> {
    let (ast::CopySource::Table { table_name, columns }, false, ast::CopyTarget::Stdin) = (source, to, target) else {
        return Err(SqlError::unsupported("only COPY table FROM STDIN is supported"));
    };
    let mut kind = CopyKind::Text;
    for option in &options {
        if let ast::CopyOption::Format(format) = option {
            kind = match format.value.to_lowercase().as_str() {
                "csv" => CopyKind::Csv,
                "text" => CopyKind::Text,
                "binary" => CopyKind::Binary,
                other => return Err(SqlError::unsupported(format!("COPY format \"{other}\" is not supported: use text, csv or binary"))),
            };
        }
    }
    for option in &legacy {
        match option {
            ast::CopyLegacyOption::Csv(_) => kind = CopyKind::Csv,
            ast::CopyLegacyOption::Binary => kind = CopyKind::Binary,
            _ => {}
        }
    }
    let csv = kind == CopyKind::Csv;
    let mut format = CopyFormat {
        kind,
        delimiter: if csv { b',' } else { b'\t' },
        null: if csv { String::new() } else { "\\N".into() },
        header: false,
        quote: b'"',
        escape: b'"',
    };
    for option in options {
        use ast::CopyOption as Copy;
        match option {
            Copy::Format(_) | Copy::Freeze(_) => {}
            Copy::Delimiter(delimiter) => format.delimiter = one_byte("delimiter", delimiter)?,
            Copy::Null(null) => format.null = null,
            Copy::Header(header) => format.header = header,
            Copy::Quote(quote) => format.quote = one_byte("quote", quote)?,
            Copy::Escape(escape) => format.escape = one_byte("escape", escape)?,
            Copy::Encoding(encoding) if encoding.eq_ignore_ascii_case("utf8") || encoding.eq_ignore_ascii_case("utf-8") => {}
            other => return Err(SqlError::unsupported(format!("COPY option {other} is not supported"))),
        }
    }
    for option in legacy {
        use ast::CopyLegacyCsvOption as Csv;
        match option {
            ast::CopyLegacyOption::Csv(options) => {
                for option in options {
                    match option {
                        Csv::Header => format.header = true,
                        Csv::Quote(quote) => format.quote = one_byte("quote", quote)?,
                        Csv::Escape(escape) => format.escape = one_byte("escape", escape)?,
                        other => return Err(SqlError::unsupported(format!("COPY option {other} is not supported"))),
                    }
                }
            }
            ast::CopyLegacyOption::Binary => {}
            ast::CopyLegacyOption::Delimiter(delimiter) => format.delimiter = one_byte("delimiter", delimiter)?,
            ast::CopyLegacyOption::Null(null) => format.null = null,
            ast::CopyLegacyOption::Header => format.header = true,
            other => return Err(SqlError::unsupported(format!("COPY option {other} is not supported"))),
        }
    }
    Ok(CopyFrom { table: table_name, columns, format })
}

fn one_byte(what: &str, character: char) -> SqlResult<u8> {
    let fits = character.is_ascii() && !matches!(character, '\n' | '\r' | '\\');
    fits.then_some(character as u8).ok_or_else(|| SqlError::unsupported(format!("COPY {what} must be a single one-byte character")))
}
