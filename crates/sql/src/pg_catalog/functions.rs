//! The functions of `pg_catalog` that psql and drivers call on system tables.

use super::tables::{index_oid, indexes, short_name};
use crate::schema::{ProcedureDescriptor, TableDescriptor};
use crate::types::{Datum, SqlType};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Every type, without length or digits.
pub const ALL_TYPES: [SqlType; 16] = [
    SqlType::Bool,
    SqlType::Int2,
    SqlType::Int4,
    SqlType::Int8,
    SqlType::Float4,
    SqlType::Float8,
    SqlType::Numeric(None),
    SqlType::Text,
    SqlType::Varchar(None),
    SqlType::Char(1),
    SqlType::Bytea,
    SqlType::Date,
    SqlType::Time,
    SqlType::Timestamp,
    SqlType::TimestampTz,
    SqlType::Uuid,
];

type Body = Arc<dyn Fn(&[Datum]) -> Datum + Send + Sync>;

/// A function of the values of one row.
pub struct RowFunction {
    name: &'static str,
    returns: DataType,
    signature: Signature,
    body: Body,
}

/// The functions, for a database of these tables and procedures.
pub fn make(tables: &[Arc<TableDescriptor>], procedures: &[Arc<ProcedureDescriptor>], user: &str) -> BTreeMap<String, Arc<ScalarUDF>> {
    let index_definitions = definitions(tables, |table, name, columns, unique| {
        let unique = if unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX {name} ON public.{} USING btree ({columns})", table.name)
    });
    let key_definitions = definitions(tables, |_, _, columns, _| format!("PRIMARY KEY ({columns})"));
    let owner = user.to_string();
    let null = |_: &[Datum]| Datum::Utf8(None);
    let functions = [
        text("array_to_string", null),
        text("col_description", null),
        text("format_type", |values| Datum::Utf8(integer(values, 0).map(|oid| format_type(oid, integer(values, 1))))),
        text("obj_description", null),
        text("pg_encoding_to_char", |_| Datum::Utf8(Some("UTF8".into()))),
        text("pg_get_constraintdef", move |values| looked_up(&key_definitions, values)),
        text("pg_get_expr", |values| values.first().cloned().unwrap_or(Datum::Utf8(None))),
        text("pg_get_indexdef", move |values| looked_up(&index_definitions, values)),
        text("pg_get_userbyid", move |_| Datum::Utf8(Some(owner.clone()))),
        text("shobj_description", null),
        yes("pg_table_is_visible"),
        yes("pg_type_is_visible"),
        function("to_regtype", DataType::Int64, |values| Datum::Int64(type_named(values))),
    ];
    let functions = functions.into_iter().chain(super::procedures::functions(procedures));
    functions.map(|function| (function.name.to_string(), Arc::new(ScalarUDF::from(function)))).collect()
}

fn function(name: &'static str, returns: DataType, body: impl Fn(&[Datum]) -> Datum + Send + Sync + 'static) -> RowFunction {
    RowFunction { name, returns, signature: Signature::variadic_any(Volatility::Immutable), body: Arc::new(body) }
}

/// A function that says yes.
pub fn yes(name: &'static str) -> RowFunction {
    function(name, DataType::Boolean, |_| Datum::Boolean(Some(true)))
}

/// A function that gives text.
pub fn text(name: &'static str, body: impl Fn(&[Datum]) -> Datum + Send + Sync + 'static) -> RowFunction {
    function(name, DataType::Utf8, body)
}

/// A text for each index, by its number.
fn definitions(tables: &[Arc<TableDescriptor>], text: impl Fn(&TableDescriptor, &str, &str, bool) -> String) -> BTreeMap<i64, String> {
    let of_table = |table: &Arc<TableDescriptor>| {
        indexes(table)
            .map(|(index, name, columns, unique)| {
                let columns: Vec<&str> = columns.iter().map(|&column| table.columns[column].name.as_str()).collect();
                (index_oid(table, index), text(table, name, &columns.join(", "), unique))
            })
            .collect::<Vec<_>>()
    };
    tables.iter().flat_map(of_table).collect()
}

fn integer(values: &[Datum], position: usize) -> Option<i64> {
    values.get(position).and_then(|value| value.to_string().parse().ok())
}

/// The text of the object whose number is given.
pub fn looked_up(texts: &BTreeMap<i64, String>, values: &[Datum]) -> Datum {
    Datum::Utf8(integer(values, 0).and_then(|oid| texts.get(&oid)).cloned())
}

fn format_type(oid: i64, modifier: Option<i64>) -> String {
    let modifier = modifier.and_then(|modifier| i32::try_from(modifier).ok()).unwrap_or(-1);
    let ty = u32::try_from(oid).ok().and_then(|oid| SqlType::from_oid(oid, modifier));
    ty.map_or_else(|| "???".to_string(), |ty| ty.to_string())
}

fn type_named(values: &[Datum]) -> Option<i64> {
    let name = values.first()?.to_string().to_lowercase();
    let found = ALL_TYPES.iter().find(|ty| ty.name() == name || short_name(ty) == name);
    found.map(|ty| i64::from(ty.oid()))
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let arrays = arguments.args.iter().map(|argument| argument.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let value = |row| {
            let values = arrays.iter().map(|array| Datum::try_from_array(array, row)).collect::<Result<Vec<_>>>()?;
            Ok((self.body)(&values))
        };
        let values = (0..rows).map(value).collect::<Result<Vec<_>>>()?;
        if values.is_empty() {
            return Ok(ColumnarValue::Array(datafusion::arrow::array::new_empty_array(&self.returns)));
        }
        Ok(ColumnarValue::Array(Datum::iter_to_array(values)?))
    }
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowFunction({})", self.name)
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &RowFunction) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
