//! The effects of a step as lines, for unit tests of exact effects.
//!
//! ```text
//!   to r1.0: a message            load rows k                        answer 7: done
//!   timer Tick after 100 ms       count protocol.event               agree on topic key
//!   sync +vote -prepared; then to r1.0: a message; then answer 7: done
//! ```
//!
//! A batch shows which rows and records it writes (`+`) and deletes (`-`), not what they hold; a load of records, of which kind they are.

use rhumb_core::actor::{Agreed, Effect, Gated, Op, Space};
use rhumb_core::{Actor, Effects, Key, Load, Timestamp};

/// An actor whose effects can be shown.
pub trait Shown: Actor {
    /// What a record of a space is called.
    fn record(space: Space) -> &'static str;

    /// An answer, in short.
    fn answer(answer: &Self::Answer) -> String;
}

/// One effect.
pub fn line<A: Shown>(effect: &Effect<A>) -> String {
    match effect {
        Effect::Send { to, note } => format!("to {to}: {note}"),
        Effect::SetTimer { timer, after } => format!("timer {timer:?} after {after}"),
        Effect::Load { load, .. } => format!("load {}", question::<A>(load)).trim_end().to_owned(),
        Effect::Persist { batch, then, .. } => {
            let ops = batch.ops.iter().map(op::<A>);
            let then = then.iter().map(|gated| match gated {
                Gated::Send { to, promise } => format!("; then to {to}: {promise}"),
                Gated::Answer { id, answer } => format!("; then answer {id}: {}", A::answer(answer)),
            });
            std::iter::once("sync".to_owned()).chain(ops).chain(then).collect()
        }
        Effect::Answer { id, answer } => format!("answer {id}: {}", A::answer(answer)),
        Effect::Collect(collect) => format!("collect up to {}, deletions up to {}", collect.horizon, collect.deletions),
        Effect::Count(event) => format!("count {event}"),
        Effect::Trace(line) => line.clone(),
    }
}

/// What the steps since this was asked last found to be agreed on.
pub fn agreed<A: Actor>(fx: &mut Effects<A>) -> impl Iterator<Item = String> {
    fx.take_agreed().into_iter().map(|Agreed { topic, key, .. }| format!("agree on {topic} {key}"))
}

fn question<A: Shown>(load: &Load) -> String {
    match load {
        Load::Get { keys, at: Timestamp::MAX, .. } => format!("rows {}", list(keys)),
        Load::Get { keys, at, .. } => format!("rows {} at {at}", list(keys)),
        Load::Stamps { keys } => format!("versions {}", list(keys)),
        Load::Records { space, .. } => format!("{} records", A::record(*space)),
        other => format!("{other:?}"),
    }
}

fn list(keys: &[Key]) -> String {
    keys.iter().map(Key::to_string).collect::<Vec<_>>().join(" ")
}

fn op<A: Shown>(op: &Op) -> String {
    match op {
        Op::PutVersion { key, .. } => format!(" +{key}"),
        Op::PutRecord { space, .. } => format!(" +{}", A::record(*space)),
        Op::DeleteRecord { space, .. } => format!(" -{}", A::record(*space)),
    }
}
