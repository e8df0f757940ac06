//! Tests of parsing: how statements are told apart, separated and refused.

use super::*;
use crate::error::SqlState;

fn one(sql: &str) -> Statement {
    let mut statements = parse(sql).expect("a statement");
    assert_eq!(statements.len(), 1);
    statements.remove(0)
}

#[test]
fn statements_are_separated_and_empty_ones_left_out() {
    let names: Vec<_> = parse("begin; ;select ';' ; end;").expect("statements").iter().map(|s| s.kind.name()).collect();
    assert_eq!(names, ["BEGIN", "SELECT", "COMMIT"]);
    assert_eq!(parse(" ;; -- nothing\n").expect("nothing"), []);
}

#[test]
fn a_syntax_error_says_where_and_what_was_expected() {
    let error = parse("select 1;\nselect (2 from t").expect_err("no closing parenthesis");
    assert_eq!((error.state(), error.position()), (SqlState::SyntaxError, Some(21)));
    assert_eq!(error.message(), "syntax error at or near \"from\"");
    assert_eq!(error.hint(), Some("Expected )."));
    let error = parse("select 'é', 'x").expect_err("an open string");
    assert_eq!((error.state(), error.position()), (SqlState::SyntaxError, Some(13)));
    assert_eq!(parse("selec 1").expect_err("no statement").position(), Some(1));
}

#[test]
fn as_of_system_time_is_taken_out_of_the_statement() {
    let statement = one("select a from t AS OF SYSTEM TIME '-5s' where a = 1");
    assert_eq!(statement.as_of.as_deref(), Some("-5s"));
    assert_eq!(statement.kind, one("select a from t where a = 1").kind);
    assert_eq!(one("begin as of system time '-1s'").as_of.as_deref(), Some("-1s"));
    assert_eq!(parse("delete from t as of system time '-5s'").expect_err("no read").state(), SqlState::SyntaxError);
    assert_eq!(one("select 'as of system time'").as_of, None);
}

#[test]
fn create_database_takes_options() {
    let StatementKind::Create(Create::Database { name, if_not_exists, options }) =
        one("CREATE DATABASE IF NOT EXISTS Shop WITH (Protocol = 'replicated_commit')").kind
    else {
        panic!("a database")
    };
    assert_eq!((name.as_str(), if_not_exists), ("shop", true));
    assert_eq!(options, [("protocol".to_string(), "replicated_commit".to_string())]);
    assert!(parse("create database shop with protocol").is_err());
}

#[test]
fn alter_database_takes_set_and_reset() {
    let of = |sql| {
        let StatementKind::AlterDatabase { name, setting, value } = one(sql).kind else { panic!("{sql}") };
        (name, setting, value)
    };
    let some = |text: &str| Some(text.to_string());
    assert_eq!(of("alter database Shop set Rhumb.Commit_Rounds = 2"), ("shop".into(), some("rhumb.commit_rounds"), some("2")));
    assert_eq!(of("alter database \"Shop\" set a to default"), ("Shop".into(), some("a"), None));
    assert_eq!(of("alter database shop reset a"), ("shop".into(), some("a"), None));
    assert_eq!(of("alter database shop reset all"), ("shop".into(), None, None));
    assert_eq!(one("alter database shop reset all").kind.name(), "ALTER DATABASE");
    assert_eq!(parse("alter database shop rename to other").expect_err("not that").state(), SqlState::SyntaxError);
}

#[test]
fn statements_about_quotas_are_taken_apart() {
    let StatementKind::Quota(QuotaCommand::Create(made)) =
        one("create quota if not exists VM offer SPARE limit 5000 parent \"My Org\" reallocation 'maximum-usage'").kind
    else {
        panic!("a quota")
    };
    let expected = QuotaDefinition {
        name: "vm".into(),
        if_not_exists: true,
        limit: "5000".into(),
        parent: Some("My Org".into()),
        protocol: None,
        offer: Some("spare".into()),
        reallocation: Some("maximum-usage".into()),
    };
    assert_eq!(made, expected);
    let lowered = StatementKind::Quota(QuotaCommand::SetLimit { name: "vm".into(), limit: "-1".into() });
    assert_eq!([one("ALTER QUOTA vm LIMIT -1").kind, one("alter quota VM set limit - 1").kind], [lowered.clone(), lowered]);
    let dropped = |name: &str, if_exists| StatementKind::Quota(QuotaCommand::Drop { name: name.into(), if_exists });
    assert_eq!(one("DROP QUOTA vm").kind, dropped("vm", false));
    assert_eq!(one("/* */ drop quota if exists \"VM\";").kind, dropped("VM", true));
    assert_eq!(one("show Quotas").kind, StatementKind::ShowQuotas);
    let error = parse("CREATE QUOTA vm PARENT org").expect_err("no limit");
    assert_eq!((error.message(), error.hint()), ("syntax error at end of input", Some("Expected LIMIT and a number of tokens.")));
    assert_eq!(parse("CREATE QUOTA vm LIMIT 1 LIMIT 2").expect_err("two limits").position(), Some(25));
    assert_eq!(one("create table quota (quota int primary key)").kind.name(), "CREATE TABLE");
}

#[test]
fn token_calls_are_told_from_queries() {
    let tokens = |sql: &str| matches!(one(sql).kind, StatementKind::Tokens(_));
    assert!(tokens("select acquire('vm', 1)") && tokens("select 1, rhumb.release($1, $2, $3) as left"));
    assert!(!tokens("select \"Acquire\"('vm', 1)") && !tokens("select other.acquire('vm', 1), acquire from release"));
    for sql in ["select case when true then acquire('vm', 1) end", "select acquire('vm', 1)::int2", "select 1 where acquire('vm', 1) > 0"] {
        let error = parse(sql).expect_err(sql);
        let message = "acquire() cannot be called here: it takes effect at once, and once, whatever becomes of what stands around it";
        assert_eq!((error.state(), error.message()), (SqlState::FeatureNotSupported, message), "{sql}");
    }
}

#[test]
fn transactions_name_their_access_mode() {
    let begin = |sql| one(sql).kind;
    assert_eq!(begin("begin"), StatementKind::Transaction(Transaction::Begin(AccessMode::Unspecified)));
    assert_eq!(begin("start transaction read only"), StatementKind::Transaction(Transaction::Begin(AccessMode::ReadOnly)));
    let kind = begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE");
    assert_eq!(kind, StatementKind::Transaction(Transaction::Begin(AccessMode::ReadWrite)));
    assert_eq!(begin("savepoint A"), StatementKind::Transaction(Transaction::Savepoint("a".into())));
    assert_eq!(begin("rollback to savepoint \"A\""), StatementKind::Transaction(Transaction::RollbackTo("A".into())));
    assert_eq!(begin("release a"), StatementKind::Transaction(Transaction::Release("a".into())));
}

#[test]
fn settings_are_named_in_lower_case() {
    let set = |sql: &str| match one(sql).kind {
        StatementKind::Set { name, value, local } => (name, value, local),
        other => panic!("{other:?}"),
    };
    assert_eq!(set("SET rhumb.read_mode = 'locking'"), ("rhumb.read_mode".into(), Some("locking".into()), false));
    assert_eq!(set("SET LOCAL statement_timeout TO 100"), ("statement_timeout".into(), Some("100".into()), true));
    assert_eq!(set("SET search_path TO a, b"), ("search_path".into(), Some("a, b".into()), false));
    assert_eq!(set("SET TIME ZONE 'UTC'"), ("timezone".into(), Some("UTC".into()), false));
    assert_eq!(set("SET statement_timeout = DEFAULT").1, None);
    assert_eq!(one("SHOW regions").kind, StatementKind::ShowRegions);
    assert_eq!(one("SHOW rhumb.read_mode").kind, StatementKind::Show("rhumb.read_mode".into()));
    assert_eq!(one("SHOW transaction isolation level").kind, StatementKind::Show("transaction_isolation".into()));
    assert_eq!(one("RESET ALL").kind, StatementKind::Reset(None));
}

#[test]
fn copy_from_stdin_reads_its_options() {
    let StatementKind::Copy(copy) = one("COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER, NULL 'x')").kind else { panic!("a copy") };
    assert_eq!(copy.columns.len(), 2);
    let expected = CopyFormat { kind: CopyKind::Csv, delimiter: b',', null: "x".into(), header: true, quote: b'"', escape: b'"' };
    assert_eq!(copy.format, expected);
    let StatementKind::Copy(copy) = one("COPY t FROM STDIN").kind else { panic!("a copy") };
    assert_eq!((copy.format.kind, copy.format.delimiter, copy.format.null.as_str()), (CopyKind::Text, b'\t', "\\N"));
    let StatementKind::Copy(copy) = one("copy t (a) from stdin binary").kind else { panic!("a copy") };
    assert_eq!(copy.format.kind, CopyKind::Binary);
    assert_eq!(parse("COPY t TO STDOUT").expect_err("unsupported").state(), SqlState::FeatureNotSupported);
}

#[test]
fn select_for_update_is_told_from_select_wherever_it_asks_for_locks() {
    for locking in [
        "select a from t for update",
        "select a from (select a from t for update) as u",
        "with u as (select a from t for share) select a from u",
        "select a from t where a in (select b from u for update)",
        "select a from t union (select b from u for update)",
    ] {
        assert_eq!(one(locking).kind.name(), "SELECT FOR UPDATE", "{locking}");
    }
    assert_eq!(one("select a from (select a from t) as u").kind.name(), "SELECT");
}

#[test]
fn nothing_locks_without_waiting_wherever_that_is_asked_for() {
    for query in ["select a from t for update", "select a from (select a from t for update", "with u as (select a from t for update"] {
        for refused in ["nowait", "skip locked"] {
            let close = if query.contains('(') { ") as u" } else { "" };
            let rest = if query.starts_with("with") { ") select a from u" } else { close };
            let error = parse(&format!("{query} {refused}{rest}")).expect_err(refused);
            assert_eq!((error.state().code(), error.hint().is_some()), ("0A000", true), "{query} {refused}");
        }
    }
    for writing in ["insert into t select a from u for update nowait", "update t set a = (select b from u limit 1 for update skip locked)"]
    {
        assert_eq!(parse(writing).expect_err(writing).state().code(), "0A000", "{writing}");
    }
}

#[test]
fn a_procedure_is_one_statement_whatever_its_body_holds() {
    let made = |sql: &str| match parse(sql).expect("statements").remove(0).kind {
        StatementKind::Create(Create::Procedure(definition)) => *definition,
        other => panic!("{other:?}"),
    };
    let text = "create or replace procedure Pay(in Amount numeric(6, 2), \"Who\" int) as $body$ select 1; select ';' $body$ language 'SQL'; select 2";
    assert_eq!(parse(text).expect("two").len(), 2);
    let procedure = made(text);
    let names: Vec<&str> = procedure.parameters.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((procedure.or_replace, procedure.name.to_string().as_str(), names), (true, "Pay", vec!["amount", "Who"]));
    assert_eq!(procedure.body, " select 1; select ';' ");
    let text =
        "select 0;\ncreate procedure p() begin atomic\n  select case 1 when 1 then 'é' end;\n  delete from t; end; begin; select 3; end";
    let kinds: Vec<&str> = parse(text).expect("statements").iter().map(|statement| statement.kind.name()).collect();
    assert_eq!(kinds, ["SELECT", "CREATE PROCEDURE", "BEGIN", "SELECT", "COMMIT"]);
    let procedure = made(text.split_once('\n').expect("two lines").1);
    assert_eq!(body(&procedure.body).expect("statements").iter().map(StatementKind::name).collect::<Vec<_>>(), ["SELECT", "DELETE"]);
    assert_eq!(made("create procedure p() as ''").body, "");
    let error = parse("create procedure p(a int) as select 1").expect_err("no quotes");
    assert_eq!((error.state(), error.position()), (SqlState::SyntaxError, Some(30)));
    let error = body("select 1;\nselec").expect_err("no statement");
    assert_eq!((error.state(), error.position()), (SqlState::SyntaxError, None));
}

#[test]
fn a_call_has_a_name_and_values() {
    let StatementKind::Call { name, arguments } = one("call shop.public.Pay(1, $2, 'x' || 'y')").kind else { panic!("a call") };
    assert_eq!((name.to_string().as_str(), arguments.len()), ("shop.public.Pay", 3));
    for (sql, state) in [("call pay", SqlState::SyntaxError), ("call pay(a => 1)", SqlState::FeatureNotSupported)] {
        assert_eq!(parse(sql).expect_err(sql).state(), state, "{sql}");
    }
}
