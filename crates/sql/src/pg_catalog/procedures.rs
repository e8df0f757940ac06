//! Procedures in `pg_proc`, and the functions by which psql's `\df` prints what they are given.

use super::maker::{Maker, number, text};
use super::oids::{FIRST_USER_OID, OWNER_OID, PUBLIC_OID};
use super::plain::{looked_up, text as text_function, yes};
use crate::engine::row_function::RowFunction;
use crate::schema::ProcedureDescriptor;
use crate::types::Datum;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type that says that nothing is returned.
const VOID_OID: i64 = 2_278;
/// The language SQL.
const SQL_OID: i64 = 14;

fn oid(procedure: &ProcedureDescriptor) -> i64 {
    FIRST_USER_OID + i64::from(procedure.id)
}

/// `pg_proc`.
pub fn table(procedures: &[Arc<ProcedureDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_proc")
        .numbers(&["oid", "pronamespace", "proowner", "prolang", "prorettype", "pronargs"])
        .texts(&["proname", "prokind", "provolatile", "proparallel", "prosrc"])
        .text_lists(&["proacl"])
        .flags(&["prosecdef", "proleakproof", "proisstrict", "proretset"]);
    for procedure in procedures {
        maker.row(&[
            ("oid", number(oid(procedure))),
            ("pronamespace", number(PUBLIC_OID)),
            ("proowner", number(OWNER_OID)),
            ("prolang", number(SQL_OID)),
            ("prorettype", number(VOID_OID)),
            ("pronargs", number(procedure.parameters.len() as i64)),
            ("proname", text(procedure.name.as_str())),
            ("prokind", text("p")),
            ("provolatile", text("v")),
            ("proparallel", text("u")),
            ("prosrc", text(procedure.body.as_str())),
        ]);
    }
    maker
}

/// The functions.
pub fn functions(procedures: &[Arc<ProcedureDescriptor>]) -> [RowFunction; 4] {
    let arguments = |procedure: &ProcedureDescriptor| {
        let each = procedure.parameters.iter().map(|parameter| format!("IN {} {}", parameter.name, parameter.ty.name()));
        each.collect::<Vec<_>>().join(", ")
    };
    let texts: Arc<BTreeMap<i64, String>> = Arc::new(procedures.iter().map(|procedure| (oid(procedure), arguments(procedure))).collect());
    let identity = texts.clone();
    [
        text_function("pg_get_function_arguments", move |values| looked_up(&texts, values)),
        text_function("pg_get_function_identity_arguments", move |values| looked_up(&identity, values)),
        text_function("pg_get_function_result", |_| Datum::Utf8(None)),
        yes("pg_function_is_visible"),
    ]
}
