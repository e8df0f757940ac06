//! Random expressions of a kind, over the columns in sight.

use super::schema::{Kind, TABLES};
use rhumb_core::Rng;

/// Columns as they are named, and their kinds.
pub type Columns = Vec<(String, Kind)>;

/// Makes expressions.
pub struct Expressions<'a> {
    pub rng: &'a mut Rng,
    pub columns: Columns,
    /// How many queries stand around this one: tables in it have other names.
    pub nested: usize,
}

impl Expressions<'_> {
    fn choose<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.rng.below(items.len() as u64) as usize]
    }

    /// An expression of this kind, of operations so deep at most.
    pub fn of(&mut self, kind: Kind, depth: u32) -> String {
        if depth == 0 || self.rng.chance(0.25) {
            return self.leaf(kind);
        }
        match self.rng.below(8) {
            0 => format!("coalesce({}, {})", self.of(kind, depth - 1), self.of(kind, depth - 1)),
            1 => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.of(Kind::Bool, depth - 1),
                self.of(kind, depth - 1),
                self.of(kind, depth - 1)
            ),
            2 if kind != Kind::Interval => format!("nullif({}, {})", self.of(kind, depth - 1), self.of(kind, depth - 1)),
            3 if !matches!(kind, Kind::Interval | Kind::Bool) => {
                let name = self.choose(&["greatest", "least"]);
                format!("{name}({}, {})", self.of(kind, depth - 1), self.of(kind, depth - 1))
            }
            _ => self.operation(kind, depth - 1),
        }
    }

    fn leaf(&mut self, kind: Kind) -> String {
        let own: Vec<&String> = self.columns.iter().filter(|(_, of)| *of == kind).map(|(name, _)| name).collect();
        match self.rng.below(10) {
            0 => format!("NULL::{}", kind.name()),
            1..=6 if !own.is_empty() => own[self.rng.below(own.len() as u64) as usize].clone(),
            _ => kind.literal(self.rng),
        }
    }

    /// One that is no column.
    pub fn operation(&mut self, kind: Kind, depth: u32) -> String {
        let one = |of: &mut Self| of.of(kind, depth);
        match kind {
            Kind::Int => match self.rng.below(6) {
                0 => format!("({} * {})", one(self), self.rng.between(1, 5)),
                1 => format!("({} % 7)", one(self)),
                2 => format!("abs({})", one(self)),
                3 => format!("length({})", self.of(Kind::Text, depth)),
                op => format!("({} {} {})", one(self), if op == 4 { "+" } else { "-" }, one(self)),
            },
            Kind::Big => match self.rng.below(4) {
                0 => format!("({}::bigint)", self.of(Kind::Int, depth)),
                1 => self.counted(),
                op => format!("({} {} {})", one(self), if op == 2 { "+" } else { "-" }, self.of(Kind::Int, depth)),
            },
            Kind::Numeric => match self.rng.below(6) {
                0 => format!("round({}, 1)", one(self)),
                1 => format!("({} / 4)", one(self)),
                2 => format!("({} * {})", one(self), self.of(Kind::Int, depth)),
                3 => format!("abs({})", one(self)),
                op => format!("({} {} {})", one(self), if op == 4 { "+" } else { "-" }, one(self)),
            },
            Kind::Float => match self.rng.below(4) {
                0 => format!("({} * 0.5::float8)", one(self)),
                1 => format!("({}::float8)", self.of(Kind::Int, depth)),
                op => format!("({} {} {})", one(self), if op == 2 { "+" } else { "-" }, one(self)),
            },
            Kind::Text => match self.rng.below(6) {
                0 => format!("upper({})", one(self)),
                1 => format!("lower({})", one(self)),
                2 => format!("substr({}, 2)", one(self)),
                3 => format!("left({}, 2)", one(self)),
                4 => format!("({}::text)", self.of(Kind::Int, depth)),
                _ => format!("({} || {})", one(self), one(self)),
            },
            Kind::Bool => self.condition(depth),
            Kind::Date => match self.rng.below(3) {
                0 => format!("({}::date)", self.of(Kind::Timestamp, depth)),
                op => format!("({} {} {})", one(self), if op == 1 { "+" } else { "-" }, self.rng.between(0, 40)),
            },
            Kind::Timestamp => match self.rng.below(4) {
                0 => format!("({}::timestamp)", self.of(Kind::Date, depth)),
                1 => format!("date_trunc('{}', {})", self.choose(&["hour", "day", "month", "year"]), one(self)),
                op => format!("({} {} {})", one(self), if op == 2 { "+" } else { "-" }, self.of(Kind::Interval, depth)),
            },
            Kind::Interval => match self.rng.below(4) {
                0 => format!("({} - {})", self.of(Kind::Timestamp, depth), self.of(Kind::Timestamp, depth)),
                1 => format!("({} * 2)", one(self)),
                op => format!("({} {} {})", one(self), if op == 2 { "+" } else { "-" }, one(self)),
            },
        }
    }

    /// A condition.
    fn condition(&mut self, depth: u32) -> String {
        let kind = Kind::ALL[self.rng.below(Kind::ALL.len() as u64) as usize];
        match self.rng.below(12) {
            0 => format!("(NOT {})", self.of(Kind::Bool, depth)),
            1 => format!("({} AND {})", self.of(Kind::Bool, depth), self.of(Kind::Bool, depth)),
            2 => format!("({} OR {})", self.of(Kind::Bool, depth), self.of(Kind::Bool, depth)),
            3 => format!("({} IS {}NULL)", self.of(kind, depth), self.choose(&["", "NOT "])),
            4 => format!("({} IS {}DISTINCT FROM {})", self.of(kind, depth), self.choose(&["", "NOT "]), self.of(kind, depth)),
            5 => format!(
                "({} {}BETWEEN {} AND {})",
                self.of(kind, depth),
                self.choose(&["", "NOT "]),
                self.of(kind, depth),
                self.of(kind, depth)
            ),
            6 => {
                let items: Vec<String> = (0..self.rng.between(1, 3)).map(|_| self.of(kind, depth.min(1))).collect();
                format!("({} {}IN ({}))", self.of(kind, depth), self.choose(&["", "NOT "]), items.join(", "))
            }
            7 => {
                let pattern = self.choose(&["a%", "%b", "_", "%", "a\\_b", ""]);
                format!("({} {}LIKE '{pattern}')", self.of(Kind::Text, depth), self.choose(&["", "NOT "]))
            }
            8 => {
                format!("({} IS {}{})", self.of(Kind::Bool, depth), self.choose(&["", "NOT "]), self.choose(&["TRUE", "FALSE", "UNKNOWN"]))
            }
            9 => self.exists(depth),
            _ => {
                let op = self.choose(&["=", "<>", "<", "<=", ">", ">="]);
                format!("({} {op} {})", self.of(kind, depth), self.of(kind, depth))
            }
        }
    }

    /// A table of a query within, and what makes its expressions: the columns around it are in sight, too.
    fn within(&mut self) -> (String, Expressions<'_>) {
        let (table, columns) = TABLES[self.rng.below(TABLES.len() as u64) as usize];
        let alias = format!("q{}", self.nested + 1);
        let inner = columns.iter().map(|(name, kind)| (format!("{alias}.{name}"), *kind));
        let columns = inner.chain(self.columns.iter().cloned()).collect();
        (format!("{table} AS {alias}"), Expressions { rng: self.rng, columns, nested: self.nested + 1 })
    }

    /// A condition on the rows of another query.
    fn exists(&mut self, depth: u32) -> String {
        if self.nested > 0 {
            return self.leaf(Kind::Bool);
        }
        let (negation, is_list, kind) = (self.choose(&["", "NOT "]), self.rng.chance(0.5), Kind::PLAIN[self.rng.below(8) as usize]);
        let outer = self.of(kind, depth.min(1));
        let (table, mut inner) = self.within();
        let condition = inner.of(Kind::Bool, depth.min(2));
        if is_list {
            let item = inner.of(kind, 1);
            format!("({outer} {negation}IN (SELECT {item} FROM {table} WHERE {condition}))")
        } else {
            format!("({negation}EXISTS (SELECT 1 FROM {table} WHERE {condition}))")
        }
    }

    /// How many rows of a table satisfy a condition.
    fn counted(&mut self) -> String {
        if self.nested > 0 {
            return self.leaf(Kind::Big);
        }
        let (table, mut inner) = self.within();
        format!("(SELECT count(*) FROM {table} WHERE {})", inner.of(Kind::Bool, 1))
    }
}
