//! The bound that lets the clients share the missing picks: a price per site, by Lagrangian duality.
//!
//! Let P be the sites chosen and r the number of picks that are missing. Take one order statistic of order q (see
//! [`Relaxation`]) with lengths x(s), and let p(i) be the i-th smallest length in P (0 for i = 0). Its value is at most v
//! only if q sites are within v; if i of P are, then N = q − i picks must be. For any target μ ≤ p(q) this *gain*
//!
//! ```text
//!   φ(s) = max over N = 1..min(q, r) of  ( μ − max(x(s), p(q − N)) )⁺ / N          (only where q − N ≤ |P|)
//! ```
//!
//! satisfies, for every set X of r picks: value(P ∪ X) ≥ μ − Σ φ(s), s in X.
//!
//! *Proof.* Let v be the value. If v ≥ μ there is nothing to show. Else let i be the number of P within v; i < q, for
//! p(q) ≥ μ > v; so N = q − i picks are within v, N ≤ r, and p(q − N) = p(i) ≤ v. Each of these has
//! φ(s) ≥ (μ − max(x(s), p(i))) / N ≥ (μ − v) / N. Together they make μ − v. ∎
//!
//! Summed over clients and families: cost ≥ Σ μ − Σ Φ(s), s in X, where Φ(s) sums up the gains of a site; so
//!
//! ```text
//!   cost ≥ Σ μ − (the r largest Φ)                  for every choice of targets μ
//! ```
//!
//! Subgradient ascent looks for good targets: a target rises where the picks that seem best gain less than it costs, and
//! falls otherwise. And a site s whose inclusion makes Σ μ − Φ(s) − (the r − 1 largest others) exceed the incumbent is in no
//! better placement: it is closed for the whole subtree (fixing by reduced costs). Where one pick is missing and μ = p(q),
//! the bound of every site is the value itself.
//!
//! Arithmetic is in 32-bit floats, summed up in 64 bits; [`Duals::proven`] takes off what rounding can have added.

mod gains;
mod groups;
mod lanes;
mod pairs;

use super::relaxation::Relaxation;
use crate::problem::Problem;
use gains::{Levels, descend, gain_of};
use groups::shortest;
pub(super) use groups::{Group, Kind};
use lanes::Block;
pub(super) use lanes::LANES;
pub(super) use pairs::Pairs;

/// Half a unit in the last place of a 32-bit float: the relative error of one operation.
const ROUNDING: f64 = 6e-8;
/// How many rounds without a better bound halve the step of the ascent.
const STALLED_ROUNDS_MAX: u32 = 3;
/// The ascent aims this much above the incumbent, so that a bound that meets it still moves.
const AIM: f64 = 1.002;

/// The targets of every group.
#[derive(Clone)]
pub(super) struct Targets(pub Vec<Vec<Block>>);

/// The sorted lengths of the sites chosen: by group (none for pairs) and rank.
pub(super) type Ranked = Vec<Vec<Vec<Block>>>;

/// A bound, and what it was made of.
#[derive(Clone, Default)]
pub(super) struct Bound {
    pub value: f64,
    /// Σ μ, with the constants of the clients, less what rounding can have added.
    pub targets: f64,
    /// Φ of each open site, plus what rounding can have taken.
    pub gains: Vec<f64>,
}

/// A partial placement.
pub(super) struct Partial<'n> {
    /// The lengths to the sites chosen.
    pub ranked: &'n Ranked,
    /// The sites that may be chosen besides.
    pub open: &'n [usize],
    /// How many of those will be.
    pub missing: usize,
}

/// The groups of a problem.
pub(super) struct Duals {
    pub groups: Vec<Group>,
    /// What every placement costs besides.
    constant: f64,
    scratch: Vec<Levels>,
}

impl Duals {
    /// The groups of `relaxation`, weighted by the objective, a sum over clients. The last group, if `pairs` are given, takes
    /// the place of the one of majorities wherever it is used.
    pub fn new(problem: &Problem, relaxation: &Relaxation, weights: &[u64]) -> Duals {
        let mut groups = Vec::new();
        for family in &relaxation.families {
            let length = |client: usize, site: usize| {
                let unit = weights[client] as f64 * family.scale[client] as f64 * if family.halves { 0.5 } else { 1.0 };
                (unit * f64::from(family.row(client)[site])) as f32
            };
            groups.push(Group::new(Kind::Client { order: family.order }, relaxation.clients, relaxation.sites, length));
        }
        // Halves of a nanosecond are dropped in a latency: at most one per client and family.
        let dropped: u64 = relaxation.families.iter().filter(|family| family.halves).count() as u64;
        let constant = |(constant_ns, weight): (&u64, &u64)| *weight as f64 * (*constant_ns as f64 - dropped as f64);
        let constant = relaxation.constant_ns.iter().zip(weights).map(constant).sum();
        debug_assert_eq!(problem.clients().len(), weights.len());
        Duals { groups, constant, scratch: Vec::new() }
    }

    /// Targets to start from: what the placement `sites` attains, and for pairs the best detour.
    pub fn targets(&self, sites: &[usize]) -> Targets {
        let mut ranked = self.nothing_ranked();
        sites.iter().for_each(|&site| self.rank(&mut ranked, site));
        let of_group = |(group, ranks): (&Group, &Vec<Vec<Block>>)| match &group.kind {
            Kind::Client { order } => ranks[order - 1].clone(),
            Kind::Pair(_) => (0..group.blocks).map(|block| shortest(group, block)).collect(),
        };
        Targets(self.groups.iter().zip(&ranked).map(of_group).collect())
    }

    /// The ranked lengths of no site.
    pub fn nothing_ranked(&self) -> Ranked {
        vec![Vec::new(); self.groups.len()]
    }

    /// Adds `site` to ranked lengths.
    pub fn rank(&self, ranked: &mut Ranked, site: usize) {
        let mut with = Ranked::new();
        self.ranked_with(ranked, site, &mut with);
        *ranked = with;
    }

    /// Makes of `with` the lengths `ranked` and those to `site`: each goes between the next shorter and the next longer.
    pub fn ranked_with(&self, ranked: &Ranked, site: usize, with: &mut Ranked) {
        with.resize_with(self.groups.len(), Vec::new);
        for ((group, ranks), with) in self.groups.iter().zip(ranked).zip(with) {
            if matches!(group.kind, Kind::Pair(_)) {
                continue;
            }
            with.resize_with(ranks.len() + 1, Vec::new);
            let row = group.row(site);
            for (rank, with) in with.iter_mut().enumerate() {
                with.clear();
                with.extend_from_slice(row);
                for (block, lengths) in with.iter_mut().enumerate() {
                    for lane in 0..LANES {
                        let shorter = if rank > 0 { ranks[rank - 1][block][lane] } else { 0.0 };
                        let longer = ranks.get(rank).map_or(f32::INFINITY, |longer| longer[block][lane]);
                        lengths[lane] = lengths[lane].min(longer).max(shorter);
                    }
                }
            }
        }
    }

    /// The best bound that `rounds` of ascent from `targets` find for what completes `partial`; `targets` become those of the
    /// bound. Only the groups in `active` count. Ends where the bound exceeds `incumbent`, or where `keep_going`, which is
    /// told of every bound, says no.
    pub fn ascend(
        &mut self,
        active: &[usize],
        partial: &Partial<'_>,
        targets: &mut Targets,
        rounds: u32,
        incumbent: f64,
        mut keep_going: impl FnMut(f64) -> bool,
    ) -> Bound {
        let (open, missing) = (partial.open, partial.missing);
        self.set_levels(active, partial.ranked, missing, targets);
        let mut best = Bound { value: f64::NEG_INFINITY, ..Bound::default() };
        let mut best_targets = targets.clone();
        let (mut step, mut stalled) = (1.0, 0);
        let mut largest: Vec<usize> = Vec::new();
        for round in 0..rounds {
            let bound = self.proven(active, targets, open, missing, &mut largest);
            let value = bound.value;
            if value > best.value {
                best = bound;
                best_targets.clone_from(targets);
                stalled = 0;
            } else {
                stalled += 1;
                if stalled > STALLED_ROUNDS_MAX {
                    step *= 0.5;
                    stalled = 0;
                }
            }
            if best.value > incumbent || !keep_going(best.value) || round + 1 == rounds {
                break;
            }
            let picks: Vec<usize> = largest[..missing].iter().map(|&index| open[index]).collect();
            if !self.climb(active, targets, &picks, step * (incumbent * AIM - value).max(0.0)) {
                break;
            }
        }
        *targets = best_targets;
        best
    }

    /// Computes the levels of all active groups into the scratch space and caps the targets.
    fn set_levels(&mut self, active: &[usize], ranked: &Ranked, missing: usize, targets: &mut Targets) {
        self.scratch.resize_with(self.groups.len(), Levels::default);
        for &place in active {
            let group = &self.groups[place];
            let levels = &mut self.scratch[place];
            match &group.kind {
                Kind::Client { order } => levels.of_clients(group.blocks, *order, &ranked[place], missing),
                Kind::Pair(pairs) => {
                    levels.caps.resize(group.blocks, [f32::INFINITY; LANES]);
                    levels.picks = (1..=missing.min(ranked[pairs.of].len() + 1)).collect();
                    levels.resize(group.blocks);
                    pairs.levels(&ranked[pairs.of], &mut levels.lowest, &mut levels.caps);
                }
            }
            let capped = targets.0[place].iter_mut().flatten().zip(levels.caps.iter().flatten());
            // Where one pick is missing, the cap is the best target; else the ascent looks for it.
            let at_cap = missing == 1;
            capped.for_each(|(target, cap)| *target = if at_cap && cap.is_finite() { *cap } else { target.min(*cap) });
        }
    }

    /// The bound at `targets`, less what rounding can have added: a length, a rank and a gain are each rounded once, and a
    /// sum of gains once per block. `largest` becomes the places in `open`, those with the `missing` largest gains first.
    fn proven(&mut self, active: &[usize], targets: &Targets, open: &[usize], missing: usize, largest: &mut Vec<usize>) -> Bound {
        let mut gains = vec![0.0; open.len()];
        let mut sum = 0.0;
        for &place in active {
            let group = &self.groups[place];
            let targets = &targets.0[place];
            self.scratch[place].aim(targets);
            let levels = &self.scratch[place];
            sum += targets.iter().flatten().map(|&target| f64::from(target)).sum::<f64>();
            let added = 1.0 + ROUNDING * (group.blocks + 2 * LANES) as f64;
            for (gain, &site) in gains.iter_mut().zip(open) {
                *gain += added * f64::from(gain_of(group.row(site), targets, levels));
            }
        }
        let targets = self.constant + sum * (1.0 - ROUNDING * (2 * missing + 4) as f64);
        largest.clear();
        largest.extend(0..open.len());
        if missing < open.len() {
            largest.select_nth_unstable_by(missing, |&a, &b| gains[b].total_cmp(&gains[a]));
        }
        let value = targets - largest[..missing].iter().map(|&index| gains[index]).sum::<f64>();
        Bound { value, targets, gains }
    }

    /// Moves the targets along the subgradient at `picks`; whether there was anywhere to go.
    fn climb(&self, active: &[usize], targets: &mut Targets, picks: &[usize], length: f64) -> bool {
        let mut slopes: Vec<Vec<Block>> = Vec::new();
        let mut norm = 0.0;
        for &place in active {
            let (group, levels) = (&self.groups[place], &self.scratch[place]);
            let mut slope = vec![[1.0f32; LANES]; group.blocks];
            for &site in picks {
                descend(&mut slope, group.row(site), &targets.0[place], levels);
            }
            let limits = levels.caps.iter().flatten().zip(group.longest.iter().flatten());
            for ((slope, target), (cap, longest)) in slope.iter_mut().flatten().zip(targets.0[place].iter().flatten()).zip(limits) {
                if *slope > 0.0 && *target >= cap.min(*longest) {
                    *slope = 0.0;
                }
                norm += f64::from(*slope * *slope);
            }
            slopes.push(slope);
        }
        if norm < 1e-9 {
            return false;
        }
        let step = (length / norm) as f32;
        for (&place, slope) in active.iter().zip(&slopes) {
            let (group, levels) = (&self.groups[place], &self.scratch[place]);
            let limits = levels.caps.iter().flatten().zip(group.longest.iter().flatten());
            for ((target, slope), (cap, longest)) in targets.0[place].iter_mut().flatten().zip(slope.iter().flatten()).zip(limits) {
                *target = (*target + step * slope).min(*cap).min(*longest).max(0.0);
            }
        }
        true
    }
}
