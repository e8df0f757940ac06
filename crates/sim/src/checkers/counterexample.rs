//! A cycle of dependencies, told edge by edge.

use super::graph::{Label, Step};
use super::keys::KeyNo;
use super::observations::Observations;
use super::violation::{Anomaly, Violation};
use crate::history::TxnNo;

/// The violation that `cycle` is: `T3 -ww[k1]-> T7 -rw[k2]-> T3`, and why for each edge.
pub(super) fn explain(observations: &Observations<'_>, anomaly: Anomaly, cycle: &[Step]) -> Violation {
    let mut story: String = cycle.iter().map(|step| format!("{} -{}-> ", step.from, name(observations, step.label))).collect();
    story.push_str(&cycle.first().map_or(String::new(), |step| step.from.to_string()));
    for step in cycle {
        story.push_str(&format!("\n  {}", reason(observations, step)));
    }
    observations.violation(anomaly, story, cycle.iter().map(|step| step.from))
}

/// What an edge between two transactions says, in brief.
pub(super) fn name(observations: &Observations<'_>, label: Label) -> String {
    let key = |key: KeyNo| observations.keys.key(key);
    match label {
        Label::Ww(at) => format!("ww[{}]", key(at)),
        Label::Wr(at) => format!("wr[{}]", key(at)),
        Label::Rw(at) => format!("rw[{}]", key(at)),
        Label::Absent(at) => format!("rw[{} absent]", key(at)),
        Label::RealTime => "rt".to_owned(),
        Label::Onward => String::new(),
    }
}

/// What an edge between two transactions says, in a sentence.
pub(super) fn reason(observations: &Observations<'_>, step: &Step) -> String {
    let Step { from, label, to } = *step;
    let wrote = |no, key| observations.show_write(no, key);
    match label {
        Label::Ww(key) => format!("{from} wrote {} before {to} wrote {}", wrote(from, key), wrote(to, key)),
        Label::Wr(key) => format!("{to} read {}, after {from} wrote {}", read(observations, to, key), wrote(from, key)),
        Label::Rw(key) => format!("{from} read {}, before {to} wrote {}", read(observations, from, key), wrote(to, key)),
        Label::Absent(key) => format!("{from} scanned and found no {}, before {to} wrote {}", observations.keys.key(key), wrote(to, key)),
        Label::RealTime | Label::Onward => {
            let (before, after) = (observations.history.txn(from), observations.history.txn(to));
            let ended = before.acknowledged().map_or_else(String::new, |time| time.to_string());
            format!("{from} had committed at {ended} when {to} began at {}", after.invoked)
        }
    }
}

fn read(observations: &Observations<'_>, no: TxnNo, key: KeyNo) -> String {
    let read = observations.facts(no).reads.iter().find(|read| read.key == key);
    read.map_or_else(String::new, |read| read.seen.at(observations.keys.key(key)))
}
