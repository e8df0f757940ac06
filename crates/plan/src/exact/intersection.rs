//! The bound that majorities meet: two clients cannot both be near their own majority.
//!
//! Any two majorities of a placement share a site s. So for clients c and e with lengths x, y and the values q(c), q(e) of
//! their order statistics, q(c) + q(e) ≥ x(s) + y(s) for some site s of the placement: no less than the detour from c to e
//! by the best of all sites, which in a metric is the distance between them. Pairing up all clients (each may be divided
//! among several pairs) so that distant ones are together bounds their weighted sum from below, *whatever the number of
//! replicas*, and is nearly exact where clients lie around a centre.
//!
//! It becomes a bound of partial placements P with r = 2f + 1 − |P| picks missing as follows. Let v = a + b be the value of
//! a pair at some split, i of P be within a of c and j of P within b of e. Majorities of f + 1 need f + 1 − i and f + 1 − j
//! picks, of which r are to be had; so at least N = 2 (f + 1) − i − j − r = |P| + 1 − (i + j) picks are within a of c *and*
//! within b of e, and those have x(s) + y(s) ≤ v. That is what an order statistic over the lengths x(s) + y(s) with
//!
//! ```text
//!   p(K) = least of p_c(i) + p_e(j) over i + j = K,        order |P| + 1
//! ```
//!
//! says, so the gains of [`site_prices`](super::site_prices) apply to pairs without a change, and so does their proof.

use super::relaxation::{Family, Relaxation};
use super::site_prices::{Group, Kind, Pairs};

/// How often two pairs are looked at to exchange partners.
const EXCHANGES_MAX: usize = 60_000_000;
/// Pairs are no more than this many times the clients: an exchange between pairs of unequal weight makes a third.
const PAIRS_PER_CLIENT_MAX: usize = 2;
/// Detours by the best of all sites are computed for so many sums of two lengths, else they are guessed while pairing.
const DETOURS_MAX: usize = 200_000_000;

/// A pair while partners are exchanged: both clients and the weight that they have in common.
#[derive(Clone, Copy)]
struct Pair {
    first: usize,
    second: usize,
    weight: f64,
}

/// The group of pairs for the family at `of`, whose clients count by `weights`.
pub(super) fn group_of_pairs(relaxation: &Relaxation, of: usize, weights: &[u64]) -> Group {
    let family = &relaxation.families[of];
    let pairs = matched(family, weights, relaxation.sites);
    let share = |client: usize, weight: f64| (client, (weight / weights[client] as f64) as f32);
    let members: Vec<_> = pairs.iter().map(|pair| [share(pair.first, pair.weight), share(pair.second, pair.weight)]).collect();
    let length = |client: usize, site: usize| family.scale[client] as f64 * f64::from(family.row(client)[site]);
    let count = pairs.len();
    let lengths = |index: usize, site: usize| {
        let pair: &Pair = &pairs[index];
        (pair.weight * (length(pair.first, site) + length(pair.second, site))) as f32
    };
    Group::new(Kind::Pair(Pairs { of, order: family.order, members }), count, relaxation.sites, lengths)
}

/// All clients in pairs whose weighted detours add up to much: a maximum matching by exchanges of partners.
fn matched(family: &Family, weights: &[u64], sites: usize) -> Vec<Pair> {
    let clients = weights.len();
    let detours = detours(family, clients, sites);
    let detour = |a: usize, b: usize| detours[a * clients + b];
    let mut pairs = paired_at_half(weights);
    let pairs_max = PAIRS_PER_CLIENT_MAX * clients;
    let mut looked = 0;
    while looked < EXCHANGES_MAX {
        looked += pairs.len() * pairs.len() / 2;
        let mut exchanged = false;
        for i in 0..pairs.len() {
            for j in 0..i {
                let (one, other) = (pairs[i], pairs[j]);
                let before = detour(one.first, one.second) + detour(other.first, other.second);
                let across = detour(one.first, other.first) + detour(one.second, other.second);
                let crossed = detour(one.first, other.second) + detour(one.second, other.first);
                if across.max(crossed) <= before || (one.weight != other.weight && pairs.len() >= pairs_max) {
                    continue;
                }
                let weight = one.weight.min(other.weight);
                let (third, fourth) = if across > crossed { (other.first, other.second) } else { (other.second, other.first) };
                pairs[i] = Pair { first: one.first, second: third, weight };
                pairs[j] = Pair { first: one.second, second: fourth, weight };
                let (rest, left) = if one.weight > weight { (one, one.weight - weight) } else { (other, other.weight - weight) };
                if left > 0.0 {
                    pairs.push(Pair { weight: left, ..rest });
                }
                exchanged = true;
            }
        }
        if !exchanged {
            break;
        }
    }
    pairs
}

/// Every client in pairs with those half of all weight further on.
fn paired_at_half(weights: &[u64]) -> Vec<Pair> {
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    // Twice the weights, so that half of the total is whole: the first half is paired with the second, which follows it.
    let half = total;
    let ends: Vec<u128> = weights
        .iter()
        .scan(0, |end, &weight| {
            *end += 2 * u128::from(weight);
            Some(*end)
        })
        .collect();
    let at = |position: u128| ends.partition_point(|&end| end <= position);
    let mut pairs = Vec::new();
    let mut position = 0;
    while position < half {
        let (first, second) = (at(position), at(position + half));
        let next = ends[first].min(ends[second] - half).min(half);
        pairs.push(Pair { first, second, weight: (next - position) as f64 / 2.0 });
        position = next;
    }
    pairs
}

/// The shortest way from each client to each other by a site, per unit of weight. Where that would take too long, by the
/// site nearest to either: no shorter, and good enough to choose partners by.
fn detours(family: &Family, clients: usize, sites: usize) -> Vec<f32> {
    let scaled = |client: usize| family.row(client).iter().map(move |&length| family.scale[client] as f32 * length as f32);
    let rows: Vec<Vec<f32>> = (0..clients).map(|client| scaled(client).collect()).collect();
    let nearest = |row: &Vec<f32>| (0..sites).min_by(|&a, &b| row[a].total_cmp(&row[b])).expect("a problem has candidates");
    let nearest: Vec<usize> = rows.iter().map(nearest).collect();
    let all = clients * clients * sites <= DETOURS_MAX;
    let mut detours = vec![0.0; clients * clients];
    for a in 0..clients {
        for b in 0..a {
            let by = |site: usize| rows[a][site] + rows[b][site];
            let detour = if all {
                rows[a].iter().zip(&rows[b]).map(|(x, y)| x + y).fold(f32::INFINITY, f32::min)
            } else {
                by(nearest[a]).min(by(nearest[b]))
            };
            detours[a * clients + b] = detour;
            detours[b * clients + a] = detour;
        }
    }
    detours
}
