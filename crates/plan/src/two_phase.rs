//! Two-phase commit among partition leaders: who should coordinate it, and who should tell the client (GPlacer, 4.1).
//!
//! ```text
//!   client ── home ────────── coordinator ────────── farthest leader
//!     OwnLeader: home coordinates          hop + 2 rounds
//!     BestLeader: anyone coordinates       hop + 2 rounds
//!     LocalParticipantTells                ½ hop + 1 round, ½ trip coordinator → home, ½ hop home → client
//! ```
//!
//! Where the coordinator is home itself it answers after both rounds, as the paper has it: there is nobody else to tell the
//! client. Half a round trip is the unit here, so that one-way trips stay whole numbers.

use crate::matrix::Matrix;
use crate::model::TwoPhase;

/// Leaders of partitions, with what depends on them alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaders<'l> {
    /// Where they are.
    pub places: &'l [usize],
    /// How long each takes to replicate a decision, in microseconds.
    pub quorum_us: &'l [u32],
    /// The round trip from each to the farthest other, in microseconds.
    pub farthest_us: &'l [u32],
}

impl Leaders<'_> {
    /// The coordinator of a transaction of clients `here` across all leaders, and how long it takes in halves of a
    /// microsecond. `home` leads the clients' own partition. Both are places in the list of leaders.
    pub fn commit_half_us(&self, matrix: &Matrix, here: usize, home: usize, two_phase: TwoPhase) -> (usize, u64) {
        let hop = |from: usize, to: usize| u64::from(matrix.hop_us(from, to));
        let both_rounds = |leader: usize| {
            let rounds = 2 * u64::from(self.farthest_us[leader]) + u64::from(self.quorum_us[leader]);
            2 * (hop(here, self.places[leader]) + rounds)
        };
        let told_at_home = |leader: usize| {
            let ways = hop(here, self.places[leader]) + hop(self.places[leader], self.places[home]) + hop(self.places[home], here);
            ways + 2 * (u64::from(self.farthest_us[leader]) + u64::from(self.quorum_us[leader]))
        };
        let length = |leader: usize| match two_phase {
            TwoPhase::LocalParticipantTells if leader != home => told_at_home(leader),
            _ => both_rounds(leader),
        };
        if two_phase == TwoPhase::OwnLeader {
            return (home, both_rounds(home));
        }
        let all = (0..self.places.len()).map(|leader| (leader, length(leader)));
        // Home wins a tie, then the first.
        all.min_by_key(|&(leader, length)| (length, leader != home)).expect("there is a leader")
    }
}

/// The round trip from the leader in `place` to the farthest other of `places`; nothing if there is no other: two-phase
/// commit within one place is no matter of the wide area.
pub(crate) fn farthest_us(matrix: &Matrix, place: usize, places: &[usize]) -> u32 {
    let from = matrix.from(place);
    places.iter().map(|&other| if other == place { 0 } else { from[other] }).max().unwrap_or(0)
}

/// The region that coordinates a two-phase commit among leaders at `participants`, asked for by a client in that
/// participant's region which is the place `home` of the list, and how long it takes in halves of a microsecond, apart from
/// replication.
pub fn two_phase_commit(matrix: &Matrix, participants: &[usize], home: usize, two_phase: TwoPhase) -> (usize, u64) {
    let farthest: Vec<u32> = participants.iter().map(|&place| farthest_us(matrix, place, participants)).collect();
    let leaders = Leaders { places: participants, quorum_us: &vec![0; participants.len()], farthest_us: &farthest };
    let (coordinator, half_us) = leaders.commit_half_us(matrix, participants[home], home, two_phase);
    (participants[coordinator], half_us)
}
