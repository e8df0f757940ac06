//! Inspection: what an actor holds in memory, table by table, so that a driver can check that all of it is bounded.

/// One table or queue of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Role and table, as `gateway.open`.
    pub name: &'static str,
    /// Entries now.
    pub size: usize,
    /// Entries at the most, at any time; follows from the protocol's constants and the shape of the cluster.
    pub bound: usize,
    /// Entries at the most once nothing goes wrong, no client asks and all that was asked is answered.
    pub resting: usize,
}

impl Table {
    /// A table that is empty at rest.
    pub const fn new(name: &'static str, size: usize, bound: usize) -> Table {
        Table { name, size, bound, resting: 0 }
    }

    /// The same with up to `resting` entries at rest.
    pub const fn resting_at(self, resting: usize) -> Table {
        Table { resting, ..self }
    }

    /// The same for a table that keeps its size at rest: one entry for each site, or a cache.
    pub const fn stays(self) -> Table {
        Table { resting: self.bound, ..self }
    }
}

/// An actor whose tables can be listed.
pub trait Inspect {
    /// Calls `visit` for each table and queue. Cheap: sizes only.
    fn tables(&self, visit: &mut dyn FnMut(Table));

    /// All of them.
    fn list_tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        self.tables(&mut |table| tables.push(table));
        tables
    }
}
