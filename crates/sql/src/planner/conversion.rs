//! ALTER COLUMN … TYPE: what becomes of a column's values.

use super::expression::Expressions;
use super::parameters::Parameters;
use super::{Planning, rewrite};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::conversion::ConvertedColumn;
use crate::executor::evaluate::Scope;
use crate::schema::TableDescriptor;
use crate::types::SqlType;
use datafusion::sql::sqlparser::ast;

/// A column of another type.
#[derive(Debug)]
pub struct Conversion {
    /// The new type.
    pub ty: SqlType,
    /// Its values; `None` if rows hold them as they did before.
    pub value: Option<ConvertedColumn>,
}

/// The conversion of a column to the type `data_type`, by `using` if that is given. Errors: 42804 if only `using` could tell how.
pub fn conversion(
    cx: Planning<'_>,
    table: &TableDescriptor,
    position: usize,
    data_type: &ast::DataType,
    using: Option<&ast::Expr>,
) -> SqlResult<Conversion> {
    let (from, ty) = (table.columns[position].ty, SqlType::from_ast(data_type)?);
    let Some(using) = using else {
        if !from.assigns_to(&ty) {
            let name = &table.columns[position].name;
            return Err(SqlError::new(SqlState::DatatypeMismatch, format!("column \"{name}\" cannot be cast automatically to type {ty}"))
                .with_hint(format!("You might need to specify \"USING {name}::{ty}\".")));
        }
        let value = (!from.is_stored_in(&ty)).then(|| ConvertedColumn { position, ty, using: None });
        return Ok(Conversion { ty, value });
    };
    let mut using = using.clone();
    rewrite::rewrite(&mut using, cx.facts)?;
    let scope = Scope::default().with(&table.name, &table.arrow_schema());
    let mut expressions = Expressions::new(cx, scope, Parameters::of(&using, &[])?)?;
    let planned = expressions.plan(&using, Some(&ty), "transform expressions")?;
    let using = Some(expressions.finish_definition()?.compile(planned)?);
    Ok(Conversion { ty, value: Some(ConvertedColumn { position, ty, using }) })
}
