//! What a plan was asked for and what it took for granted.

use super::words::{protocol_name, reads_name};
use crate::problem::Problem;
use serde::Serialize;

/// What a plan was asked for, and what was assumed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Terms {
    /// How many regions may be lost.
    pub faults: usize,
    /// How transactions commit.
    pub protocol: String,
    /// Where reads go.
    pub reads: &'static str,
    /// Whether a region may hand its commits to another coordinator.
    pub handoff: bool,
    /// What the placement keeps to, in words.
    pub constraints: Vec<String>,
    /// What was assumed, in words.
    pub assumptions: Vec<String>,
}

impl Terms {
    /// What `problem` asks for; nothing is assumed yet.
    pub(super) fn new(problem: &Problem) -> Terms {
        let request = problem.request();
        Terms {
            faults: request.faults,
            protocol: protocol_name(request.model.protocol),
            reads: reads_name(request.model.reads),
            handoff: request.model.handoff,
            constraints: request.constraints.iter().map(|constraint| constraint.describe(problem.matrix())).collect(),
            assumptions: Vec::new(),
        }
    }
}
