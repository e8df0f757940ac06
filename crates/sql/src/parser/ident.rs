//! Names.

use datafusion::sql::sqlparser::ast::Ident;

/// A name as PostgreSQL folds it: lower case unless it is quoted.
pub fn fold(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}
