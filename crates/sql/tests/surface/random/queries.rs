//! Random queries over the tables of [`schema`](super::schema): joins, conditions, groups, sets, orders.

use super::expressions::{Columns, Expressions};
use super::schema::{Kind, TABLES};
use rhumb_core::Rng;

/// How deep conditions and items of the select list are.
const DEPTH: u32 = 3;

/// Makes one query.
pub struct Queries<'a> {
    rng: &'a mut Rng,
}

impl Queries<'_> {
    pub fn new(rng: &mut Rng) -> Queries<'_> {
        Queries { rng }
    }

    fn expressions(&mut self, columns: &Columns) -> Expressions<'_> {
        Expressions { rng: self.rng, columns: columns.clone(), nested: 0 }
    }

    fn kind(&mut self, kinds: &[Kind]) -> Kind {
        kinds[self.rng.below(kinds.len() as u64) as usize]
    }

    /// One to three tables, joined, and their columns.
    fn from(&mut self) -> (String, Columns) {
        let (mut from, mut columns) = (String::new(), Columns::new());
        for place in 0..self.rng.between(1, 3) {
            let (table, own) = TABLES[self.rng.below(TABLES.len() as u64) as usize];
            let alias = format!("t{place}");
            columns.extend(own.iter().map(|(name, kind)| (format!("{alias}.{name}"), *kind)));
            if place == 0 {
                from = format!("{table} AS {alias}");
                continue;
            }
            let keys: Vec<&str> = columns
                .iter()
                .filter(|(name, kind)| *kind == Kind::Int && !name.starts_with(&alias))
                .map(|(name, _)| name.as_str())
                .collect();
            let other = keys[self.rng.below(keys.len() as u64) as usize].to_owned();
            let mut on = format!("{alias}.{} = {other}", own[0].0);
            if self.rng.chance(0.3) {
                let more = self.expressions(&columns).of(Kind::Bool, 1);
                on = format!("{on} AND {more}");
            }
            let join = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"][[0, 0, 1, 1, 2, 3][self.rng.below(6) as usize]];
            // PostgreSQL has no FULL JOIN by conditions that it cannot merge or hash.
            let on = if join == "FULL JOIN" { format!("{alias}.{} = {other}", own[0].0) } else { on };
            from = format!("{from} {join} {table} AS {alias} ON {on}");
        }
        (from, columns)
    }

    fn condition(&mut self, columns: &Columns) -> String {
        if self.rng.chance(0.7) { format!(" WHERE {}", self.expressions(columns).of(Kind::Bool, DEPTH)) } else { String::new() }
    }

    /// A query, and the same with the condition, without it, and where it is NULL.
    pub fn parted(&mut self) -> [String; 4] {
        let (from, columns) = self.from();
        let items: Vec<String> = (0..self.rng.between(1, 3))
            .map(|place| {
                let kind = self.kind(&Kind::ALL);
                format!("{} AS c{place}", self.expressions(&columns).of(kind, 1))
            })
            .collect();
        let whole = format!("SELECT {} FROM {from}", items.join(", "));
        let condition = self.expressions(&columns).of(Kind::Bool, DEPTH);
        [
            whole.clone(),
            format!("{whole} WHERE {condition}"),
            format!("{whole} WHERE NOT {condition}"),
            format!("{whole} WHERE ({condition}) IS NULL"),
        ]
    }

    /// Any query, and whether its rows have an order.
    pub fn any(&mut self) -> (String, bool) {
        let (query, columns) = match self.rng.below(7) {
            0 | 1 => return (self.grouped(), false),
            2 => self.of_sets(),
            3 => return (self.ranked(), false),
            4 => return (self.sorted(), true),
            _ => self.plain(),
        };
        if self.rng.chance(0.4) { (format!("{query}{}", self.order(columns)), true) } else { (query, false) }
    }

    fn items(&mut self, kinds: &[Kind], columns: &Columns) -> String {
        let items: Vec<String> =
            kinds.iter().enumerate().map(|(place, kind)| format!("{} AS c{place}", self.expressions(columns).of(*kind, 2))).collect();
        items.join(", ")
    }

    fn kinds(&mut self) -> Vec<Kind> {
        (0..self.rng.between(1, 4)).map(|_| self.kind(&Kind::PLAIN)).collect()
    }

    /// By every column, so that it is the only one.
    fn order(&mut self, columns: usize) -> String {
        let mut places: Vec<usize> = (1..=columns).collect();
        self.rng.shuffle(&mut places);
        let by: Vec<String> = places
            .iter()
            .map(|place| {
                let direction = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"][self.rng.below(4) as usize];
                format!("{place}{direction}")
            })
            .collect();
        let limit = if self.rng.chance(0.5) { format!(" LIMIT {}", self.rng.below(8)) } else { String::new() };
        let offset = if self.rng.chance(0.3) { format!(" OFFSET {}", self.rng.below(4)) } else { String::new() };
        format!(" ORDER BY {}{limit}{offset}", by.join(", "))
    }

    /// A query of one select list, and its columns.
    fn plain(&mut self) -> (String, usize) {
        let (from, columns) = self.from();
        let distinct = if self.rng.chance(0.2) { "DISTINCT " } else { "" };
        let kinds = self.kinds();
        (format!("SELECT {distinct}{} FROM {from}{}", self.items(&kinds, &columns), self.condition(&columns)), kinds.len())
    }

    /// A query of one table, sorted by expressions. Its columns are called as those of the table, which the expressions mean.
    fn sorted(&mut self) -> String {
        let (table, own) = TABLES[self.rng.below(TABLES.len() as u64) as usize];
        let columns: Columns = own.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        let kinds = self.kinds();
        let items: Vec<String> = kinds
            .iter()
            .enumerate()
            .map(|(place, kind)| {
                let name =
                    if self.rng.chance(0.5) { own[self.rng.below(own.len() as u64) as usize].0.to_owned() } else { format!("c{place}") };
                format!("{} AS {name}", self.expressions(&columns).of(*kind, 2))
            })
            .collect();
        let keys: Vec<String> = (0..self.rng.between(1, 2))
            .map(|_| {
                let kind = self.kind(&Kind::ALL);
                let key = self.expressions(&columns).operation(kind, 1);
                format!("{key}{}", ["", " DESC"][self.rng.below(2) as usize])
            })
            .collect();
        let places: Vec<String> = (1..=kinds.len()).map(|place| place.to_string()).collect();
        let limit = if self.rng.chance(0.5) { format!(" LIMIT {}", self.rng.below(8)) } else { String::new() };
        let condition = self.condition(&columns);
        format!("SELECT {} FROM {table}{condition} ORDER BY {}, {}{limit}", items.join(", "), keys.join(", "), places.join(", "))
    }

    /// A query of two select lists, and its columns.
    fn of_sets(&mut self) -> (String, usize) {
        let kinds = self.kinds();
        let mut parts = Vec::new();
        for _ in 0..2 {
            let (from, columns) = self.from();
            parts.push(format!("SELECT {} FROM {from}{}", self.items(&kinds, &columns), self.condition(&columns)));
        }
        let set = ["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"][self.rng.below(6) as usize];
        (parts.join(&format!(" {set} ")), kinds.len())
    }

    fn grouped(&mut self) -> String {
        let (from, columns) = self.from();
        let condition = self.condition(&columns);
        let by: Vec<String> = (0..self.rng.below(3))
            .map(|_| {
                let kind = self.kind(&Kind::PLAIN);
                self.expressions(&columns).of(kind, 1)
            })
            .collect();
        let mut items: Vec<String> = by.iter().enumerate().map(|(place, expr)| format!("{expr} AS g{place}")).collect();
        for place in 0..self.rng.between(1, 3) {
            items.push(format!("{} AS a{place}", self.aggregate(&columns)));
        }
        // A constant is no place in the select list: groups are named by those.
        let places: Vec<String> = (1..=by.len()).map(|place| place.to_string()).collect();
        let groups = if by.is_empty() { String::new() } else { format!(" GROUP BY {}", places.join(", ")) };
        let having = if self.rng.chance(0.2) { format!(" HAVING count(*) > {}", self.rng.below(4)) } else { String::new() };
        format!("SELECT {} FROM {from}{condition}{groups}{having}", items.join(", "))
    }

    fn aggregate(&mut self, columns: &Columns) -> String {
        let filter = match self.rng.chance(0.2) {
            true => format!(" FILTER (WHERE {})", self.expressions(columns).of(Kind::Bool, 1)),
            false => String::new(),
        };
        let of = |queries: &mut Self, kinds: &[Kind]| {
            let kind = queries.kind(kinds);
            queries.expressions(columns).of(kind, 2)
        };
        let ordered = [Kind::Int, Kind::Big, Kind::Numeric, Kind::Float, Kind::Text, Kind::Date, Kind::Timestamp];
        let call = match self.rng.below(9) {
            0 => "count(*)".to_owned(),
            1 => format!("count({})", of(self, &Kind::ALL)),
            2 => format!("count(DISTINCT {})", of(self, &Kind::PLAIN)),
            3 => format!("sum({})", of(self, &[Kind::Int, Kind::Big, Kind::Numeric, Kind::Float, Kind::Interval])),
            4 => format!("avg({})", of(self, &[Kind::Int, Kind::Numeric])),
            5 => format!("bool_and({})", of(self, &[Kind::Bool])),
            6 => {
                let text = of(self, &[Kind::Text]);
                format!("string_agg({text}, ',' ORDER BY {text})")
            }
            7 => format!("min({})", of(self, &ordered)),
            _ => format!("max({})", of(self, &ordered)),
        };
        format!("{call}{filter}")
    }

    /// Window functions over rows that are told apart by their key.
    fn ranked(&mut self) -> String {
        let (table, own) = TABLES[self.rng.below(2) as usize];
        let columns: Columns = own.iter().map(|(name, kind)| (format!("t0.{name}"), *kind)).collect();
        let (part, key) = (self.kind(&Kind::PLAIN), self.kind(&Kind::ALL));
        let (part, key) = (self.expressions(&columns).of(part, 1), self.expressions(&columns).of(key, 1));
        let over = match self.rng.below(3) {
            0 => format!("ORDER BY {key}, t0.id"),
            1 => format!("PARTITION BY {part} ORDER BY t0.id"),
            _ => format!("PARTITION BY {part} ORDER BY {key} DESC, t0.id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        };
        let call = match self.rng.below(6) {
            0 => "row_number()".to_owned(),
            1 => "rank()".to_owned(),
            2 => format!("lag({})", self.expressions(&columns).of(Kind::Int, 1)),
            3 => format!("sum({})", self.expressions(&columns).of(Kind::Int, 1)),
            4 => format!("first_value({})", self.expressions(&columns).of(Kind::Text, 1)),
            _ => "count(*)".to_owned(),
        };
        let condition = self.condition(&columns);
        format!("SELECT t0.id AS c0, {call} OVER ({over}) AS c1 FROM {table} AS t0{condition}")
    }
}
