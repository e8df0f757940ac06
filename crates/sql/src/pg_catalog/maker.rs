//! A system table being made: columns of three kinds, and rows that name those that matter.

use crate::engine::batch_of;
use crate::types::Datum;
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

/// A truth value.
pub fn flag(value: bool) -> Datum {
    Datum::Boolean(Some(value))
}

/// A table being made: its columns, then its rows in that order.
pub struct Maker {
    name: &'static str,
    columns: Vec<(&'static str, DataType)>,
    rows: Vec<Vec<Datum>>,
}

impl Maker {
    /// A table without columns.
    pub fn new(name: &'static str) -> Maker {
        Maker { name, columns: Vec::new(), rows: Vec::new() }
    }

    /// Numbers, OIDs among them.
    pub fn numbers(self, names: &[&'static str]) -> Maker {
        self.columns(names, DataType::Int64)
    }

    /// Texts.
    pub fn texts(self, names: &[&'static str]) -> Maker {
        self.columns(names, DataType::Utf8)
    }

    /// Truth values.
    pub fn flags(self, names: &[&'static str]) -> Maker {
        self.columns(names, DataType::Boolean)
    }

    fn columns(mut self, names: &[&'static str], ty: DataType) -> Maker {
        self.columns.extend(names.iter().map(|name| (*name, ty.clone())));
        self
    }

    /// A row: the columns that matter; the others get 0, false or NULL.
    pub fn row(&mut self, values: &[(&str, Datum)]) {
        let value = |(name, ty): &(&'static str, DataType)| {
            let given = values.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
            given.unwrap_or(match ty {
                DataType::Int64 => number(0),
                DataType::Boolean => flag(false),
                _ => Datum::Utf8(None),
            })
        };
        self.rows.push(self.columns.iter().map(value).collect());
    }

    /// Adds it to `tables`.
    pub fn finish(self, tables: &mut BTreeMap<String, Arc<dyn TableSource>>) -> Result<()> {
        let fields: Vec<Field> = self.columns.iter().map(|(name, ty)| Field::new(*name, ty.clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = batch_of(&schema, self.rows.len(), |row, column| self.rows[row][column].clone())?;
        tables.insert(self.name.to_string(), provider_as_source(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)));
        Ok(())
    }
}
