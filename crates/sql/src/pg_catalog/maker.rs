//! A system table being made: columns of five kinds, and rows that name those that matter.

use crate::engine::batch_of;
use crate::types::{Datum, Element, SqlType, array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::TableSource;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A text.
pub fn text(value: impl Into<String>) -> Datum {
    Datum::Utf8(Some(value.into()))
}

/// A number.
pub fn number(value: impl Into<i64>) -> Datum {
    Datum::Int64(Some(value.into()))
}

/// A list of numbers of columns.
pub fn list(values: impl IntoIterator<Item = u32>) -> Datum {
    let values: Vec<Datum> = values.into_iter().map(|value| Datum::Int16(i16::try_from(value).ok())).collect();
    array(Element::INT2, &values)
}

/// A truth value.
pub fn flag(value: bool) -> Datum {
    Datum::Boolean(Some(value))
}

/// A table being made: its columns, then its rows in that order.
pub struct Maker {
    name: &'static str,
    columns: Vec<Field>,
    rows: Vec<Vec<Datum>>,
}

impl Maker {
    /// A table without columns.
    pub fn new(name: &'static str) -> Maker {
        Maker { name, columns: Vec::new(), rows: Vec::new() }
    }

    /// Numbers, OIDs among them.
    pub fn numbers(self, names: &[&'static str]) -> Maker {
        self.columns(names, SqlType::Int8)
    }

    /// Texts.
    pub fn texts(self, names: &[&'static str]) -> Maker {
        self.columns(names, SqlType::Text)
    }

    /// Arrays of numbers of columns.
    pub fn lists(self, names: &[&'static str]) -> Maker {
        self.columns(names, SqlType::Array(Element::INT2))
    }

    /// The same as PostgreSQL has them of indexes.
    pub fn vectors(self, names: &[&'static str]) -> Maker {
        self.columns(names, SqlType::Int2Vector)
    }

    /// Arrays of texts.
    pub fn text_lists(self, names: &[&'static str]) -> Maker {
        self.columns(names, SqlType::Array(Element::TEXT))
    }

    /// Truth values.
    pub fn flags(self, names: &[&'static str]) -> Maker {
        self.columns(names, SqlType::Bool)
    }

    fn columns(mut self, names: &[&'static str], ty: SqlType) -> Maker {
        self.columns.extend(names.iter().map(|name| ty.field(name, true)));
        self
    }

    /// A row: the columns that matter; the others get 0, false or NULL.
    pub fn row(&mut self, values: &[(&str, Datum)]) {
        let value = |field: &Field| {
            let given = values.iter().find(|(given, _)| given == field.name()).map(|(_, value)| value.clone());
            given.unwrap_or_else(|| match field.data_type() {
                DataType::Int64 => number(0),
                DataType::Boolean => flag(false),
                _ => SqlType::of_field(field).map_or(Datum::Null, |ty| ty.null()),
            })
        };
        self.rows.push(self.columns.iter().map(value).collect());
    }

    /// Adds it to `tables`.
    pub fn finish(self, tables: &mut BTreeMap<String, Arc<dyn TableSource>>) -> Result<()> {
        let schema = Arc::new(Schema::new(self.columns.clone()));
        let batch = batch_of(&schema, self.rows.len(), |row, column| self.rows[row][column].clone())?;
        tables.insert(self.name.to_string(), provider_as_source(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)));
        Ok(())
    }
}
