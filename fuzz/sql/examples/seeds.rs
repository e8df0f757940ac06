//! Writes `seeds/`: inputs that the decoders take, made by the encoders where there are any, for the fuzzer to begin with.
//! Run it after a change of format: `cargo run --example seeds` in this folder.

use rhumb_sql::catalog::{Entry, encode_entry};
use rhumb_sql::fuzzing::{Format, TYPES, encode_row, row_key, table, written};
use rhumb_sql::protocols::PROTOCOLS;
use rhumb_sql::schema::{DatabaseDescriptor, DatabaseId, ProcedureDescriptor, ProcedureParameter};
use rhumb_sql::types::{SqlType, parse_text};
use std::fs;
use std::path::Path;
use std::sync::Arc;

const STATEMENTS: [&str; 17] = [
    "select a, b as x, count(*) over (partition by b) from t where c between 1.5 and $1 order by d desc nulls last limit 3",
    "select t.a, sum(u.v) from t left join u on t.b = u.k group by t.a having sum(u.v) > 1 order by 1",
    "with w as (select a from t where e union all select 1) select * from w where a in (select a from t for update)",
    "insert into t (a, b) values (1, $1), (2, default) on conflict (a) do update set b = excluded.b || 'x' returning *",
    "update t set c = c + 1, d = now() where b = 'x' and c is not null returning a",
    "delete from u where k like 'a%' and v <> 0",
    "select * from t as of system time '-10s' where a = 1; begin isolation level serializable; commit",
    "explain select case when e then cast(b as int4) else -a end from t where d > timestamp '2024-01-01' - interval '1 day'",
    "create table w (id uuid primary key, n numeric(10, 2) default 0, unique (n)); create unique index w_n on w (n, id)",
    "create database d with (protocol = 'replicated_commit'); drop database if exists d",
    "create database d with (protocol = 'quad', cores = 3); alter database d set cores = auto; alter database d reset all",
    "create procedure pay(a int, b numeric) as $$ update t set n = n - $2 where id = $1 $$; call pay(1, 2.5); drop procedure pay",
    "copy t (a, b) from stdin with (format csv, header true, delimiter ';', null '')",
    "set statement_timeout = '1s'; show server_version; select current_database(), version(), $1::date, e'\\x41', $$x$$",
    "create quota if not exists vm limit 5000 parent \"Org\" offer all; alter quota vm set limit -1; drop quota vm; show quotas; \
     select acquire('vm', $1, $2) + 1 as n, rhumb.release('vm', 1)::text; select q.held from rhumb.quotas q, rhumb.quotas",
    "alter table t add c int not null default 1 check (c > a), drop b, alter a type text using a::text || 'x'; alter index i rename to j",
    "begin; savepoint a; select set_config('jit', 'off', true); rollback to a; release a; vacuum (full) t (a); select g from generate_series(1, 3) g",
];

fn main() {
    for (number, text) in STATEMENTS.iter().enumerate() {
        write("statement", &format!("{number:02}.sql"), text.as_bytes());
        write("plan", &format!("{number:02}.sql"), text.as_bytes());
    }
    for (number, ty) in TYPES.iter().enumerate() {
        let value = parse_text(ty, sample(ty)).expect("a sample is a value");
        for (code, format) in [Format::Text, Format::Binary].into_iter().enumerate() {
            let bytes = written(ty, &value, format).expect("a value can be written").expect("it is not NULL");
            write("parameter", &format!("{number:02}-{code}"), &[&[number as u8, code as u8], &bytes[..]].concat());
        }
        let table = table(*ty, *ty);
        let (key, stored) = encode_row(&table, &vec![value.clone(), value]).expect("a row can be encoded");
        let columns = &key.0[row_key(&table, &[]).0.len()..];
        write("row", &format!("{number:02}"), &[&[number as u8, number as u8, columns.len() as u8], columns, &stored.0].concat());
    }
    let database = DatabaseDescriptor { id: DatabaseId(5), name: "d".into(), protocol: PROTOCOLS[0].0.into() };
    let parameters = vec![ProcedureParameter { name: "a".into(), ty: SqlType::Int4 }];
    let body = "delete from t where a = $1".into();
    let procedure = ProcedureDescriptor { database: DatabaseId(5), id: 300, name: "p".into(), parameters, body };
    let entries = [
        Entry::Database(Arc::new(database)),
        Entry::Table(Arc::new(table(SqlType::Int8, SqlType::Numeric(Some((9, 2)))))),
        Entry::Index("t".into()),
        Entry::Settings([("rhumb.commit_rounds".to_string(), "2".to_string())].into()),
        Entry::Procedure(Arc::new(procedure)),
    ];
    for (number, entry) in entries.iter().enumerate() {
        write("catalog_entry", &format!("{number}"), &encode_entry(entry).expect("an entry can be encoded").0);
    }
    let opening = [&26u32.to_be_bytes()[..], b"\0\x03\0\0user\0me\0dbname\0d\0\0"].concat();
    write("wire", "simple", &[opening, message(b'Q', b"select 1\0"), message(b'X', b"")].concat());
    let bind = message(b'B', b"p\0s\0\0\x01\0\x01\0\x01\0\0\0\x02ab\0\0");
    let execute = [message(b'D', b"Pp\0"), message(b'E', b"p\0\0\0\0\0"), message(b'S', b"")].concat();
    write("wire", "extended", &[message(b'P', b"s\0select $1\0\0\0"), bind, execute].concat());
    write("copy_lines", "text", b"\0\x07a\\tb\t\\N\t\\x41\\102\nc\t\t\n\\.\n");
    write("copy_lines", "csv", b"\x01\x071,\"a\n\"\"b\"\r\n2,,\"\"\n3,d");
    write("copy_lines", "csv-escape", b"\x02\x071;'a\\'b';NULL\n2;'\\\\';x\n");
    write("copy_tuples", "two-rows", b"\x09PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\x01\0\0\0\0\xff\xff");
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn sample(ty: &SqlType) -> &'static str {
    match ty {
        SqlType::Bool => "true",
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => "-300",
        SqlType::Float4 | SqlType::Float8 | SqlType::Numeric(_) => "-1.25",
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => "a é",
        SqlType::Bytea => "\\x00ff",
        SqlType::Date => "2024-02-29",
        SqlType::Time => "23:59:59.5",
        SqlType::Timestamp | SqlType::TimestampTz => "2024-02-29 12:00:00.25",
        SqlType::Uuid => "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    }
}

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    fs::create_dir_all(&folder).expect("a folder can be made");
    fs::write(folder.join(name), bytes).expect("writable");
}
