//! `CREATE`, `ALTER` and `DROP SEQUENCE`, and the numbers of sequences.
//!
//! Invariant: where a sequence has an owner, the owner's table has an entry for it in `sequences`, and the other way round.

use crate::catalog::counter::{Counter, Run};
use crate::catalog::foreign_keys::depended_on;
use crate::catalog::layout::{Entry, data_prefix, decode, decode_entry, encode, garbage_key, relation_key};
use crate::catalog::names::{candidates, check_name, choose};
use crate::catalog::view::get_from_majority;
use crate::catalog::{CatalogView, GeneratedSpec, SequenceOptions, visible};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser;
use crate::schema::{Column, DatabaseId, OwnedSequence, Owner, SequenceDescriptor, TableDescriptor, TableId, bounds};
use crate::types::SqlType;
use rhumb_commit::transaction::Transaction;
use rhumb_core::{Row, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

impl CatalogView {
    /// The sequence of that name. Errors: 3D000, 42P01, 42809.
    pub async fn sequence(&mut self, txn: &mut dyn Transaction, database: &str, name: &str) -> SqlResult<Arc<SequenceDescriptor>> {
        let database = self.database(txn, database).await?;
        match self.lookup(txn, relation_key(database.id, name)).await? {
            Some(Entry::Sequence(sequence)) => Ok(sequence),
            Some(_) => Err(no_sequence(name)),
            None => Err(SqlError::undefined_table(name)),
        }
    }

    /// The sequence of that name as it is now, past the cache, to be altered. Errors: 3D000, 42P01, 42809.
    pub async fn sequence_to_alter(&mut self, txn: &mut dyn Transaction, database: &str, name: &str) -> SqlResult<Arc<SequenceDescriptor>> {
        let database = self.fresh_database(txn, database).await?;
        self.fresh_sequence(txn, database.id, name).await
    }

    /// `CREATE SEQUENCE`. False if the name is taken and `if_not_exists`. Errors: 3D000, 22023, 42622, 42P07; 42P01, 42703 for what it is to go
    /// with.
    pub async fn create_sequence(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        name: &str,
        options: &SequenceOptions,
        if_not_exists: bool,
    ) -> SqlResult<bool> {
        check_name(name)?;
        let database = self.fresh_database(txn, database).await?;
        if !self.taken_names(txn, database.id, &[name.to_owned()]).await?.is_empty() {
            return if if_not_exists { Ok(false) } else { Err(SqlError::duplicate_table(name)) };
        }
        let id = TableId(self.allocate_id(txn).await?);
        let mut sequence = made(database.id, id, name, SqlType::Int8, options)?;
        self.give_owner(txn, &mut sequence, options).await?;
        self.write_sequence(txn, sequence)?;
        Ok(true)
    }

    /// Has a column take its values from a new sequence of its own, under the first of PostgreSQL's names that is free. Errors: 22023, 42P07.
    pub(super) async fn generate(
        &mut self,
        txn: &mut dyn Transaction,
        table: &mut TableDescriptor,
        position: usize,
        generated: &GeneratedSpec,
        taken: &mut BTreeSet<String>,
    ) -> SqlResult<()> {
        let Column { id: column, name, ty, .. } = table.columns[position].clone();
        if bounds(ty).is_none() {
            let message = "identity column type must be smallint, integer, or bigint";
            return Err(SqlError::new(SqlState::InvalidParameterValue, message));
        }
        let names = candidates(generated.name.as_deref(), &table.name, &[name], "seq")?;
        taken.extend(self.taken_names(txn, table.database, &names).await?);
        let name = choose(&names, taken)?;
        taken.insert(name.clone());
        let id = TableId(self.allocate_id(txn).await?);
        let mut sequence = made(table.database, id, &name, ty, &generated.options)?;
        sequence.owner = Some(Owner { table: table.name.clone(), column });
        if generated.identity.is_none() {
            sequence.used_by.insert(table.name.clone());
        }
        self.write_sequence(txn, sequence)?;
        let made = &mut table.columns[position];
        (made.nullable, made.identity) = (false, generated.identity);
        made.default = generated.identity.is_none().then(|| parser::next_number(&name));
        table.sequences.push(OwnedSequence { column, name, identity: generated.identity.is_some() });
        Ok(())
    }

    /// `DROP IDENTITY`: the column stays, its sequence goes. Error 2BP01 if other defaults need that.
    pub async fn drop_identity(&mut self, txn: &mut dyn Transaction, table: &TableDescriptor, position: usize) -> SqlResult<()> {
        let mut table = table.clone();
        let Some(name) = table.identity_sequence(position).map(str::to_owned) else { return Ok(()) };
        let sequence = self.fresh_sequence(txn, table.database, &name).await?;
        table.columns[position].identity = None;
        table.sequences.retain(|owned| owned.name != name);
        self.alter(txn, table)?;
        self.free_defaults(txn, &sequence, &BTreeSet::new(), false).await?;
        self.remove_sequence(txn, &sequence)
    }

    /// `ALTER SEQUENCE` of anything but its name. Errors: 22023; 42P01, 42703 for what it is to go with; 0A000 if an identity column needs it.
    pub async fn alter_sequence(
        &mut self,
        txn: &mut dyn Transaction,
        sequence: &SequenceDescriptor,
        options: &SequenceOptions,
    ) -> SqlResult<()> {
        let mut altered = altered(sequence, options)?;
        self.note_counted(sequence.id);
        let row = get_from_majority(txn, &[Counter::key(sequence)]).await?.remove(0);
        let counter = counter_of(sequence, row)?;
        let counter = options.restart.map_or(counter, |to| Counter::new(to.unwrap_or(altered.start)));
        check_bounds(&altered, "RESTART", counter.last)?;
        txn.put(Counter::key(sequence), encode(&counter)?)?;
        self.give_owner(txn, &mut altered, options).await?;
        self.write_sequence(txn, altered)
    }

    /// `setval()`. Error 22003.
    pub fn set_sequence(&mut self, txn: &mut dyn Transaction, sequence: &SequenceDescriptor, counter: Counter) -> SqlResult<()> {
        let SequenceDescriptor { name, min, max, .. } = sequence;
        if !(*min..=*max).contains(&counter.last) {
            let message = format!("setval: value {} is out of bounds for sequence \"{name}\" ({min}..{max})", counter.last);
            return Err(SqlError::new(SqlState::NumericValueOutOfRange, message));
        }
        txn.put(Counter::key(sequence), encode(&counter)?)?;
        self.write_sequence(txn, next_generation(sequence))
    }

    /// `RENAME TO`. Errors: 42622, 42P07.
    pub async fn rename_sequence(&mut self, txn: &mut dyn Transaction, sequence: &SequenceDescriptor, to: &str) -> SqlResult<()> {
        check_name(to)?;
        if !self.taken_names(txn, sequence.database, &[to.to_owned()]).await?.is_empty() {
            return Err(SqlError::duplicate_table(to));
        }
        let owner = sequence.owner.iter().map(|owner| &owner.table);
        let tables: BTreeSet<&String> = sequence.used_by.iter().chain(owner).collect();
        for table in tables {
            let mut table = TableDescriptor::clone(&*self.fresh_table(txn, sequence.database, table).await?);
            for default in table.columns.iter_mut().filter_map(|column| column.default.as_mut()) {
                *default = parser::with_sequence_renamed(default, &sequence.name, to)?;
            }
            table.sequences.iter_mut().filter(|owned| owned.name == sequence.name).for_each(|owned| owned.name = to.to_owned());
            self.alter(txn, table)?;
        }
        self.remove(txn, relation_key(sequence.database, &sequence.name))?;
        self.write_sequence(txn, SequenceDescriptor { name: to.to_owned(), ..sequence.clone() })
    }

    /// `DROP SEQUENCE`: defaults that need it go if `cascade`. False if there was none and `if_exists`. Errors: 2BP01, 3D000, 42P01, 42809.
    pub async fn drop_sequence(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> SqlResult<bool> {
        let database = self.fresh_database(txn, database).await?;
        let sequence = match self.fresh_sequence(txn, database.id, name).await {
            Err(error) if error.state() == SqlState::UndefinedTable => {
                let message = format!("sequence \"{name}\" does not exist");
                return if if_exists { Ok(false) } else { Err(SqlError::new(SqlState::UndefinedTable, message)) };
            }
            found => found?,
        };
        if let Some(owner) = &sequence.owner {
            let mut table = TableDescriptor::clone(&*self.fresh_table(txn, database.id, &owner.table).await?);
            if let Some(column) = (0..table.columns.len()).find(|&column| table.identity_sequence(column) == Some(name)) {
                let required = format!("column {} of table {}", table.columns[column].name, table.name);
                let message = format!("cannot drop sequence {name} because {required} requires it");
                return Err(
                    SqlError::new(SqlState::DependentObjectsStillExist, message).with_hint(format!("You can drop {required} instead."))
                );
            }
            table.sequences.retain(|owned| owned.name != name);
            self.alter(txn, table)?;
        }
        self.free_defaults(txn, &sequence, &BTreeSet::new(), cascade).await?;
        self.remove_sequence(txn, &sequence)?;
        Ok(true)
    }

    /// Before a sequence goes: takes the defaults that need it, if `cascade`, but those of the tables that are `dropped` with it. Error 2BP01.
    async fn free_defaults(
        &mut self,
        txn: &mut dyn Transaction,
        sequence: &SequenceDescriptor,
        dropped: &BTreeSet<String>,
        cascade: bool,
    ) -> SqlResult<()> {
        let name = &sequence.name;
        let mut why = Vec::new();
        for table in sequence.used_by.iter().filter(|table| !dropped.contains(*table)) {
            let before = self.fresh_table(txn, sequence.database, table).await?;
            let mut after = TableDescriptor::clone(&before);
            why.extend(without_default(&mut after, name));
            if cascade {
                let after = self.alter(txn, after)?;
                self.settle_defaults(txn, Some(&before), Some(&after)).await?;
            }
        }
        if why.is_empty() || cascade { Ok(()) } else { Err(depended_on(&format!("sequence {name}"), &why)) }
    }

    /// A table has got other defaults, or another name, or is made or gone: the sequences that they name know it.
    pub async fn settle_defaults(
        &mut self,
        txn: &mut dyn Transaction,
        before: Option<&TableDescriptor>,
        after: Option<&TableDescriptor>,
    ) -> SqlResult<()> {
        let named = |table: Option<&TableDescriptor>| -> BTreeSet<String> {
            let defaults = table.iter().flat_map(|table| &table.columns).filter_map(|column| column.default.as_deref());
            defaults.flat_map(parser::sequences_named).collect()
        };
        let (had, has) = (named(before), named(after));
        let same_name = before.map(|table| &table.name) == after.map(|table| &table.name);
        let Some(database) = before.or(after).map(|table| table.database) else { return Ok(()) };
        for name in had.union(&has).filter(|name| !(same_name && had.contains(*name) && has.contains(*name))) {
            let mut sequence = match self.fresh_sequence(txn, database, name).await {
                // It went before.
                Err(error) if error.state() == SqlState::UndefinedTable && !has.contains(name) => continue,
                found => SequenceDescriptor::clone(&*found?),
            };
            if let Some(before) = before {
                sequence.used_by.remove(&before.name);
            }
            sequence.used_by.extend(after.filter(|_| has.contains(name)).map(|table| table.name.clone()));
            self.write_sequence(txn, sequence)?;
        }
        Ok(())
    }

    /// Drops the sequences that go with a table, which goes along with those that are `dropped`. Error 2BP01 if others need them, unless `cascade`.
    pub(super) async fn drop_owned(
        &mut self,
        txn: &mut dyn Transaction,
        table: &TableDescriptor,
        dropped: &BTreeSet<String>,
        cascade: bool,
    ) -> SqlResult<()> {
        for owned in &table.sequences {
            let sequence = self.fresh_sequence(txn, table.database, &owned.name).await?;
            self.free_defaults(txn, &sequence, dropped, cascade).await?;
            self.remove_sequence(txn, &sequence)?;
        }
        Ok(())
    }

    /// Drops the sequences that go with a column which has been taken out of `table`. Error 2BP01 if defaults need them, unless `cascade`.
    pub(super) async fn drop_owned_by_column(
        &mut self,
        txn: &mut dyn Transaction,
        table: &mut TableDescriptor,
        column: u32,
        cascade: bool,
    ) -> SqlResult<()> {
        let (gone, kept): (Vec<OwnedSequence>, _) =
            std::mem::take(&mut table.sequences).into_iter().partition(|owned| owned.column == column);
        table.sequences = kept;
        for OwnedSequence { name, .. } in gone {
            let sequence = self.fresh_sequence(txn, table.database, &name).await?;
            // The table itself is not written yet.
            let why = without_default(table, &name);
            if !why.is_empty() && !cascade {
                return Err(depended_on(&format!("sequence {name}"), &why));
            }
            self.free_defaults(txn, &sequence, &[table.name.clone()].into(), cascade).await?;
            self.remove_sequence(txn, &sequence)?;
        }
        Ok(())
    }

    /// Has the sequences of a table know it by its name.
    pub(super) async fn follow_owner(&mut self, txn: &mut dyn Transaction, table: &TableDescriptor) -> SqlResult<()> {
        for owned in &table.sequences {
            let mut sequence = SequenceDescriptor::clone(&*self.fresh_sequence(txn, table.database, &owned.name).await?);
            sequence.owner = Some(Owner { table: table.name.clone(), column: owned.column });
            self.write_sequence(txn, sequence)?;
        }
        Ok(())
    }

    /// Moves the counter of a sequence on by up to `wanted` numbers; `None` if it is another sequence by now. Error 2200H.
    pub async fn take_numbers(&mut self, txn: &mut dyn Transaction, sequence: &SequenceDescriptor, wanted: u64) -> SqlResult<Option<Run>> {
        let keys = [relation_key(sequence.database, &sequence.name), Counter::key(sequence)];
        let [now, counter]: [Row; 2] =
            get_from_majority(txn, &keys).await?.try_into().map_err(|_| SqlError::internal("two keys were asked for"))?;
        let now = now.value.map(|value| decode_entry(&value.0)).transpose()?;
        let same = |now: &SequenceDescriptor| (now.id, now.generation) == (sequence.id, sequence.generation);
        if !matches!(&now, Some(Entry::Sequence(now)) if same(now)) {
            return Ok(None);
        }
        self.note_counted(sequence.id);
        let mut counter = counter_of(sequence, counter)?;
        let run = counter.take(sequence, wanted)?;
        txn.put(Counter::key(sequence), encode(&counter)?)?;
        Ok(Some(run))
    }

    /// True if the transaction has written its descriptor or read its counter, be it that it has undone that since: a block would conflict with it.
    pub fn counts_itself(&self, sequence: &SequenceDescriptor) -> bool {
        self.has_counted(sequence.id)
    }

    async fn fresh_sequence(&mut self, txn: &mut dyn Transaction, database: DatabaseId, name: &str) -> SqlResult<Arc<SequenceDescriptor>> {
        match self.read_fresh(txn, &[relation_key(database, name)]).await?.remove(0) {
            Some(Entry::Sequence(sequence)) => Ok(sequence),
            Some(_) => Err(no_sequence(name)),
            None => Err(SqlError::undefined_table(name)),
        }
    }

    /// `OWNED BY`.
    async fn give_owner(
        &mut self,
        txn: &mut dyn Transaction,
        sequence: &mut SequenceDescriptor,
        options: &SequenceOptions,
    ) -> SqlResult<()> {
        let Some(owner) = &options.owned_by else { return Ok(()) };
        if let Some(Owner { table, .. }) = sequence.owner.take() {
            let mut table = TableDescriptor::clone(&*self.fresh_table(txn, sequence.database, &table).await?);
            if table.columns.iter().enumerate().any(|(position, _)| table.identity_sequence(position) == Some(&sequence.name)) {
                let detail = format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name);
                return Err(SqlError::unsupported("cannot change ownership of identity sequence").with_detail(detail));
            }
            table.sequences.retain(|owned| owned.name != sequence.name);
            self.alter(txn, table)?;
        }
        let Some((table, column)) = owner else { return Ok(()) };
        let mut table = TableDescriptor::clone(&*self.fresh_table(txn, sequence.database, table).await?);
        let column = table.columns[visible(&table, column)?].id;
        table.sequences.push(OwnedSequence { column, name: sequence.name.clone(), identity: false });
        sequence.owner = Some(Owner { table: table.name.clone(), column });
        self.alter(txn, table).map(drop)
    }

    fn write_sequence(&mut self, txn: &mut dyn Transaction, sequence: SequenceDescriptor) -> SqlResult<()> {
        self.note_counted(sequence.id);
        if !sequence.is_sound() {
            return Err(SqlError::internal(format!("sequence \"{}\" would contradict itself", sequence.name)));
        }
        self.write(txn, relation_key(sequence.database, &sequence.name), &Entry::Sequence(Arc::new(sequence.clone())))
    }

    fn remove_sequence(&mut self, txn: &mut dyn Transaction, sequence: &SequenceDescriptor) -> SqlResult<()> {
        self.remove(txn, relation_key(sequence.database, &sequence.name))?;
        txn.put(garbage_key(&data_prefix(sequence.database, Some(sequence.id))), Value::default())?;
        Ok(())
    }
}

/// Takes the defaults out of a table that need a sequence; which they were.
fn without_default(table: &mut TableDescriptor, sequence: &str) -> Vec<String> {
    let mut taken = Vec::new();
    for column in &mut table.columns {
        if column.default.as_deref().is_some_and(|default| parser::names_sequence(default, sequence)) {
            taken.push(format!("default value for column {} of table {} depends on sequence {sequence}", column.name, table.name));
            column.default = None;
        }
    }
    taken
}

/// The counter of a sequence, as its row has it.
fn counter_of(sequence: &SequenceDescriptor, row: Row) -> SqlResult<Counter> {
    row.value.map_or(Ok(Counter::new(sequence.start)), |value| decode(&value.0))
}

/// A new sequence, of the type `ty` unless the options say another. Error 22023.
fn made(database: DatabaseId, id: TableId, name: &str, ty: SqlType, options: &SequenceOptions) -> SqlResult<SequenceDescriptor> {
    let blank = SequenceDescriptor {
        database,
        id,
        name: name.to_owned(),
        ty,
        start: 0,
        increment: 1,
        min: 0,
        max: 0,
        cycle: false,
        cache: None,
        owner: None,
        used_by: BTreeSet::new(),
        generation: 0,
    };
    let options = SequenceOptions { min: options.min.or(Some(None)), max: options.max.or(Some(None)), ..options.clone() };
    let mut sequence = shaped(&blank, &options)?;
    sequence.start = options.start.unwrap_or(if sequence.increment > 0 { sequence.min } else { sequence.max });
    check_bounds(&sequence, "START", sequence.start)?;
    Ok(sequence)
}

/// A sequence as `ALTER SEQUENCE` makes it, but for its owner. Error 22023.
fn altered(sequence: &SequenceDescriptor, options: &SequenceOptions) -> SqlResult<SequenceDescriptor> {
    let mut altered = shaped(sequence, options)?;
    altered.start = options.start.unwrap_or(sequence.start);
    check_bounds(&altered, "START", altered.start)?;
    Ok(next_generation(&altered))
}

fn shaped(sequence: &SequenceDescriptor, options: &SequenceOptions) -> SqlResult<SequenceDescriptor> {
    let invalid = |message: String| SqlError::new(SqlState::InvalidParameterValue, message);
    let ty = options.ty.unwrap_or(sequence.ty);
    let (least, greatest) = bounds(ty).ok_or_else(|| invalid("sequence type must be smallint, integer, or bigint".into()))?;
    let increment = options.increment.unwrap_or(sequence.increment);
    if increment == 0 {
        return Err(invalid("INCREMENT must not be zero".into()));
    }
    let (min_by_default, max_by_default) = if increment > 0 { (1, greatest) } else { (least, -1) };
    // Another type takes bounds along that were those of the old one.
    let (old_least, old_greatest) = bounds(sequence.ty).unwrap_or((least, greatest));
    let kept_min = if sequence.min == old_least { least } else { sequence.min };
    let kept_max = if sequence.max == old_greatest { greatest } else { sequence.max };
    let min = options.min.map_or(kept_min, |min| min.unwrap_or(min_by_default));
    let max = options.max.map_or(kept_max, |max| max.unwrap_or(max_by_default));
    for (word, value) in [("MAXVALUE", max), ("MINVALUE", min)] {
        if !(least..=greatest).contains(&value) {
            return Err(invalid(format!("{word} ({value}) is out of range for sequence data type {ty}")));
        }
    }
    if min >= max {
        return Err(invalid(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})")));
    }
    let cache = match options.cache {
        None => sequence.cache,
        Some(cache) if cache <= 0 => return Err(invalid(format!("CACHE ({cache}) must be greater than zero"))),
        // PostgreSQL's default, which its dumps say: a site takes as many as it sees fit.
        Some(1) => None,
        Some(cache) => Some(u32::try_from(cache).unwrap_or(u32::MAX)),
    };
    let cycle = options.cycle.unwrap_or(sequence.cycle);
    Ok(SequenceDescriptor { ty, increment, min, max, cache, cycle, ..sequence.clone() })
}

fn check_bounds(SequenceDescriptor { min, max, .. }: &SequenceDescriptor, word: &str, value: i64) -> SqlResult<()> {
    let message = if value < *min {
        format!("{word} value ({value}) cannot be less than MINVALUE ({min})")
    } else if value > *max {
        format!("{word} value ({value}) cannot be greater than MAXVALUE ({max})")
    } else {
        return Ok(());
    };
    Err(SqlError::new(SqlState::InvalidParameterValue, message))
}

fn next_generation(sequence: &SequenceDescriptor) -> SequenceDescriptor {
    SequenceDescriptor { generation: sequence.generation.wrapping_add(1), ..sequence.clone() }
}

/// 42809.
fn no_sequence(name: &str) -> SqlError {
    SqlError::new(SqlState::WrongObjectType, format!("\"{name}\" is not a sequence"))
}
