//! What several experiments share: which systems they compare, and what they count.

use super::super::baselines::escrow::Lending;
use super::super::baselines::multipaxsys;
use super::super::setup::{LeaderRegion, Prediction, Samya, System};
use super::super::system::Run;
use rhumb_quota::spec::{OfferPolicy, ProtocolKind};

/// MultiPaxSys as the paper describes it, led from where it is fastest.
pub(super) const MULTIPAXSYS: System = System::MultiPaxSys(multipaxsys::Settings { depth: 1, batch: 1 }, LeaderRegion::UsCentral);
/// Demarcation/Escrow, whose lenders give half of what they have.
pub(super) const DEMARCATION: System = System::Demarcation(Lending::Half);

/// Samya by protocol and offer policy, with prediction.
pub(super) const fn samya(protocol: ProtocolKind, offer: OfferPolicy) -> System {
    System::Samya(Samya { protocol, offer, prediction: Prediction::Model })
}

/// Samya as the paper runs it: both protocols, all tokens offered.
pub(super) const PAPER: [System; 2] = [samya(ProtocolKind::Majority, OfferPolicy::All), samya(ProtocolKind::Any, OfferPolicy::All)];
/// Samya that keeps serving during a redistribution.
pub(super) const SPARE: [System; 2] = [samya(ProtocolKind::Majority, OfferPolicy::Spare), samya(ProtocolKind::Any, OfferPolicy::Spare)];

/// All four.
pub(super) fn all_samya() -> [System; 4] {
    [PAPER[0], PAPER[1], SPARE[0], SPARE[1]]
}

/// Redistributions that moved tokens or were to, proactive and reactive together.
pub(super) fn redistributions(run: &Run) -> u64 {
    let kinds = ["quota.redistribution.reactive", "quota.redistribution.proactive", "quota.redistribution.again", "escrow.round"];
    kinds.into_iter().map(|kind| run.probe(kind)).sum()
}

/// Seconds as minutes, for the x axis of a chart.
pub(super) fn in_minutes(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.into_iter().map(|(seconds, y)| (seconds / 60.0, y)).collect()
}
