//! The tables that random queries read, and random rows in them: of few values, so that they meet.

use rhumb_core::Rng;

/// What a column or an expression is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Big,
    Numeric,
    Float,
    Text,
    Bool,
    Date,
    Timestamp,
    Interval,
}

impl Kind {
    pub const ALL: [Kind; 9] =
        [Kind::Int, Kind::Big, Kind::Numeric, Kind::Float, Kind::Text, Kind::Bool, Kind::Date, Kind::Timestamp, Kind::Interval];
    /// Those of which equal values are written alike.
    pub const PLAIN: [Kind; 8] = [Kind::Int, Kind::Big, Kind::Numeric, Kind::Float, Kind::Text, Kind::Bool, Kind::Date, Kind::Timestamp];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Big => "bigint",
            Kind::Numeric => "numeric(10,2)",
            Kind::Float => "float8",
            Kind::Text => "text",
            Kind::Bool => "bool",
            Kind::Date => "date",
            Kind::Timestamp => "timestamp",
            Kind::Interval => "interval",
        }
    }

    /// A value, written.
    pub fn literal(self, rng: &mut Rng) -> String {
        const TEXTS: [&str; 8] = ["", "a", "ab", "b", "B", "abc", "x%y", "a_b"];
        const INTERVALS: [&str; 6] = ["1 day", "24:00:00", "1 mon", "30 days", "02:30:00", "-1 day"];
        let small = |rng: &mut Rng| rng.between(0, 12) as i64 - 4;
        match self {
            Kind::Int => small(rng).to_string(),
            Kind::Big => format!("{}::bigint", small(rng)),
            Kind::Numeric => format!("{}.{}", small(rng), rng.below(4) * 25),
            Kind::Float => format!("({}.5)::float8", small(rng)),
            Kind::Text => format!("'{}'::text", TEXTS[rng.below(TEXTS.len() as u64) as usize]),
            Kind::Bool => rng.chance(0.5).to_string(),
            Kind::Date => format!("DATE '2024-0{}-{}'", rng.between(1, 3), rng.between(27, 29)),
            Kind::Timestamp => format!("TIMESTAMP '2024-0{}-28 0{}:30:00'", rng.between(1, 3), rng.below(3)),
            Kind::Interval => format!("INTERVAL '{}'", INTERVALS[rng.below(INTERVALS.len() as u64) as usize]),
        }
    }
}

/// A table: its name and its columns.
pub type Table = (&'static str, &'static [(&'static str, Kind)]);

pub const TABLES: [Table; 3] = [
    (
        "wide",
        &[
            ("id", Kind::Int),
            ("i", Kind::Int),
            ("b", Kind::Big),
            ("n", Kind::Numeric),
            ("f", Kind::Float),
            ("t", Kind::Text),
            ("o", Kind::Bool),
            ("d", Kind::Date),
            ("s", Kind::Timestamp),
            ("v", Kind::Interval),
        ],
    ),
    ("child", &[("id", Kind::Int), ("wide_id", Kind::Int), ("t", Kind::Text), ("o", Kind::Bool)]),
    ("pair", &[("k", Kind::Int), ("t", Kind::Text), ("n", Kind::Numeric), ("d", Kind::Date)]),
];

/// Rows of each table.
const ROWS: i64 = 14;

/// Makes the tables anew, and fills them.
pub fn statements(rng: &mut Rng) -> Vec<String> {
    let mut made = vec!["DROP TABLE IF EXISTS wide, child, pair".to_owned()];
    for (name, columns) in TABLES {
        let columns: Vec<String> = columns.iter().map(|(name, kind)| format!("{name} {}", kind.name())).collect();
        let key = if name == "pair" { "k, t" } else { "id" };
        made.push(format!("CREATE TABLE {name} ({}, PRIMARY KEY ({key}))", columns.join(", ")));
    }
    made.extend(["wide (i)", "wide (t, d)", "child (wide_id)", "pair (d)"].map(|index| format!("CREATE INDEX ON {index}")));
    for (name, columns) in TABLES {
        for row in 0..ROWS {
            let values: Vec<String> = columns
                .iter()
                .map(|(column, kind)| match (name, *column) {
                    (_, "id" | "k") => row.to_string(),
                    ("child", "wide_id") => rng.between(0, ROWS as u64).to_string(),
                    ("pair", "t") => kind.literal(rng),
                    _ if rng.chance(0.2) => "NULL".to_owned(),
                    _ => kind.literal(rng),
                })
                .collect();
            made.push(format!("INSERT INTO {name} VALUES ({})", values.join(", ")));
        }
    }
    made
}
