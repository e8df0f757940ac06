//! Names.

use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

/// The words that PostgreSQL 15 prints in quotes where they are names; those of types and functions among them.
const RESERVED: &str = " all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast char \
character check coalesce collate collation column concurrently constraint create cross current_catalog current_date current_role \
current_schema current_time current_timestamp current_user dec decimal default deferrable desc distinct do else end except exists extract \
false fetch float for foreign freeze from full grant greatest group grouping having ilike in initially inner inout int integer intersect \
interval into is isnull join lateral leading least left like limit localtime localtimestamp national natural nchar none normalize not notnull \
null nullif numeric offset on only or order out outer overlaps overlay placing position precision primary real references returning right row \
select session_user setof similar smallint some substring symmetric table tablesample then time timestamp to trailing treat trim true union \
unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces \
xmlparse xmlpi xmlroot xmlserialize xmltable ";

/// A name as PostgreSQL folds it: lower case unless it is quoted.
pub fn fold(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// A name as it is written: in quotes where it would be another one without.
pub fn quoted(name: &str) -> String {
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let plain = begins && name.chars().all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_');
    if plain && !RESERVED.contains(&format!(" {name} ")) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The name of a table without its schema and database, which can only be `public` and the session's own.
pub fn unqualified(name: &ObjectName, database: &str) -> SqlResult<Ident> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    let (qualifiers, table) = match parts.as_slice() {
        [qualifiers @ .., table] if qualifiers.len() < 3 && parts.len() == name.0.len() => (qualifiers, table),
        _ => return Err(SqlError::syntax(format!("improper qualified name (too many dotted names): {name}"))),
    };
    let names: Vec<String> = qualifiers.iter().map(|ident| fold(ident)).collect();
    let known = match names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["public"] | ["pg_catalog"] => true,
        [named, "public"] => *named == database,
        _ => false,
    };
    if known { Ok((*table).clone()) } else { Err(SqlError::undefined_table(&name.to_string().replace('"', ""))) }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_quoted_where_they_would_be_others_without() {
        for name in ["a", "_a1", "name", "id", "users"] {
            assert_eq!(quoted(name), name);
        }
        for (name, written) in
            [("A", "\"A\""), ("user", "\"user\""), ("a b", "\"a b\""), ("1a", "\"1a\""), ("a\"b", "\"a\"\"b\""), ("", "\"\"")]
        {
            assert_eq!(quoted(name), written);
        }
    }
}
