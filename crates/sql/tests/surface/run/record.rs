//! Recording: PostgreSQL's results into a script, and Rhumb's where they differ.

use super::Sessions;
use crate::client::{Client, Target};
use crate::script::{Difference, Item, NO_REASON, Record, Script};

/// Puts PostgreSQL's results into a script. It runs in a database made for it.
pub fn ask_postgresql(mut script: Script, port: u16) -> Script {
    let mut owner = Client::connect(&Target { port, database: "postgres".to_owned() }).expect("PostgreSQL");
    for sql in ["DROP DATABASE IF EXISTS rhumb WITH (FORCE)", "CREATE DATABASE rhumb"] {
        let outcome = owner.run(sql).expect("PostgreSQL");
        assert!(outcome.head.starts_with("ok "), "{sql}: {}", outcome.head);
    }
    let target = Target { port, database: "rhumb".to_owned() };
    each(&mut script, &target, |record, outcome| record.expected = Some(outcome));
    script
}

/// Puts Rhumb's results in where they differ, with the reasons that are there.
pub fn ask_rhumb(mut script: Script, target: &Target) -> Script {
    each(&mut script, target, |record, outcome| {
        let reason = record.difference.take().map_or_else(|| NO_REASON.to_owned(), |difference| difference.reason);
        record.difference = (record.expected.as_ref() != Some(&outcome)).then_some(Difference { reason, outcome });
    });
    script
}

fn each(script: &mut Script, target: &Target, mut with: impl FnMut(&mut Record, crate::script::Outcome)) {
    let mut sessions = Sessions::new(target);
    for item in &mut script.items {
        match item {
            Item::Comment(_) => {}
            Item::Session(name) => sessions.change_to(name),
            Item::Record(record) => {
                let outcome = sessions.run(&record.sql);
                with(record, outcome);
            }
        }
    }
}
