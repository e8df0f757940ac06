//! Texts of statements that can be made as deep as one likes, by every rule that is known to go deeper.

/// A kind of such texts.
#[derive(Clone, Copy, Debug)]
pub struct Deep {
    /// What makes it deep.
    pub name: &'static str,
    parts: [&'static str; 5],
}

impl Deep {
    /// The text of this depth.
    pub fn text(&self, depth: usize) -> String {
        let [before, open, middle, close, after] = self.parts;
        [before, &open.repeat(depth), middle, &close.repeat(depth), after].concat()
    }

    /// The greatest depth, up to 10,000, of which the text is `accepted`.
    pub fn deepest(&self, accepted: impl Fn(&str) -> bool) -> usize {
        let (mut good, mut bad) = (0_usize, 10_000);
        while bad - good > 1 {
            let middle = good.midpoint(bad);
            *(if accepted(&self.text(middle)) { &mut good } else { &mut bad }) = middle;
        }
        good
    }
}

const fn deep(name: &'static str, parts: [&'static str; 5]) -> Deep {
    Deep { name, parts }
}

/// All of them.
pub const DEEP: &[Deep] = &[
    deep("INTERVAL", ["SELECT ", "INTERVAL ", "'1'", "", ""]),
    deep("JSON_TABLE", ["SELECT * FROM JSON_TABLE('{}', '$' COLUMNS(", "NESTED PATH '$' COLUMNS(", "a INT PATH '$'", ")", ")) AS j"]),
    deep("NESTED PATH without brackets", ["SELECT * FROM JSON_TABLE('{}', '$' COLUMNS ", "NESTED PATH '$' COLUMNS ", "", "", ""]),
    deep("brackets", ["SELECT ", "(", "1", ")", ""]),
    deep("square brackets", ["SELECT ", "ARRAY[", "1", "]", ""]),
    deep("nested lists", ["SELECT ", "[", "1", "]", ""]),
    deep("braces", ["SELECT ", "{a: ", "1", "}", ""]),
    deep("calls", ["SELECT ", "abs(", "1", ")", ""]),
    deep("subscripts", ["SELECT a", "[1]", " FROM t", "", ""]),
    deep("NOT", ["SELECT ", "NOT ", "true", "", ""]),
    deep("minus", ["SELECT ", "- ", "1", "", ""]),
    deep("plus before", ["SELECT ", "+ ", "1", "", ""]),
    deep("tilde", ["SELECT ", "~ ", "1", "", ""]),
    deep("sums", ["SELECT 1", " + 1", "", "", ""]),
    deep("sums in brackets", ["SELECT ", "(1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + ", "1", ")", ""]),
    deep("AND", ["SELECT true", " AND true", "", "", ""]),
    deep("OR", ["SELECT 1 FROM t WHERE id = 1", " OR id = 1", "", "", ""]),
    deep("concatenation", ["SELECT 'a'", " || 'a'", "", "", ""]),
    deep("casts", ["SELECT 1", "::int", "", "", ""]),
    deep("CAST", ["SELECT ", "CAST(", "1", " AS int)", ""]),
    deep("types", ["SELECT CAST(1 AS ", "ARRAY<", "int", ">", ")"]),
    deep("dimensions", ["SELECT CAST(1 AS int", "[]", "", "", ")"]),
    deep("structs", ["SELECT CAST(1 AS ", "STRUCT<a ", "int", ">", ")"]),
    deep("IS NULL", ["SELECT 1", " IS NULL", "", "", ""]),
    deep("COLLATE", ["SELECT 'a'", " COLLATE c", "", "", ""]),
    deep("AT TIME ZONE", ["SELECT now()", " AT TIME ZONE 'UTC'", "", "", ""]),
    deep("LIKE", ["SELECT 'a'", " LIKE 'a'", "", "", ""]),
    deep("BETWEEN", ["SELECT 1", " BETWEEN 1 AND 1", "", "", ""]),
    deep("CASE in THEN", ["SELECT ", "CASE WHEN true THEN ", "1", " END", ""]),
    deep("CASE in WHEN", ["SELECT ", "CASE WHEN ", "true", " THEN true END", ""]),
    deep("CASE of CASE", ["SELECT ", "CASE ", "1", " WHEN 1 THEN 1 END", ""]),
    deep("subqueries", ["SELECT ", "(SELECT ", "1", ")", ""]),
    deep("EXISTS", ["SELECT 1 WHERE ", "EXISTS (SELECT 1 WHERE ", "true", ")", ""]),
    deep("IN", ["SELECT 1 WHERE ", "1 IN (SELECT 1 WHERE ", "true", ")", ""]),
    deep("derived tables", ["SELECT * FROM ", "(SELECT * FROM ", "t", ") AS x", ""]),
    deep("joins in brackets", ["SELECT * FROM ", "(", "t", " JOIN t AS u ON true)", ""]),
    deep("joins", ["SELECT 1 FROM t", " JOIN t ON true", "", "", ""]),
    deep("joins before their conditions", ["SELECT 1 FROM t", " JOIN t", "", " ON true", ""]),
    deep("natural joins", ["SELECT 1 FROM t", " NATURAL JOIN t", "", "", ""]),
    deep("UNION", ["SELECT 1", " UNION SELECT 1", "", "", ""]),
    deep("UNION ALL", ["SELECT 1", " UNION ALL SELECT 1", "", "", ""]),
    deep("INTERSECT", ["SELECT 1", " INTERSECT SELECT 1", "", "", ""]),
    deep("UNION in brackets", ["", "(SELECT 1 UNION ", "SELECT 1", ")", ""]),
    deep("WITH", ["", "WITH a AS (", "SELECT 1", ") SELECT 1", ""]),
    deep("EXPLAIN", ["", "EXPLAIN ", "SELECT 1", "", ""]),
    deep("PREPARE", ["", "PREPARE p AS ", "SELECT 1", "", ""]),
    deep("PRIOR", ["SELECT ", "PRIOR ", "1", "", ""]),
    deep("arrows", ["SELECT a", " -> 'b'", " FROM t", "", ""]),
    deep("colons", ["SELECT a", ":b", " FROM t", "", ""]),
    deep("lambdas", ["SELECT f(", "x -> ", "1", "", ")"]),
    deep("MATCH_RECOGNIZE", ["SELECT * FROM t MATCH_RECOGNIZE(PATTERN (", "(", "a", ")", ") DEFINE a AS true)"]),
    deep("checks", ["CREATE TABLE x (id int PRIMARY KEY, CHECK (", "NOT ", "true", "", "))"]),
    deep("defaults", ["CREATE TABLE x (id int PRIMARY KEY DEFAULT ", "1 + ", "1", "", ")"]),
    deep("GROUPING SETS", ["SELECT 1 GROUP BY ", "GROUPING SETS (", "a", ")", ""]),
];
