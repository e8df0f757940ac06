//! The rules that a test may break: the simulator must catch each, or a scenario written for it. In the product all
//! [rules](rhumb_core::rules) hold.

/// A way to break a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Planted {
    /// Algorithm 2 as the paper prints it: the tokens of a refused site count a second time.
    AsPrinted,
    /// A cohort whose leader is silent takes its offer back.
    UnfreezeOnTimeout,
    /// A list that is told again is applied again.
    SlotReplay,
    /// A leader of Avantan\[\*\] that has sent its list gives up on silence.
    AbortAfterAccept,
    /// A request id is not remembered.
    ForgottenRequestId,
    /// A leader counts once all have sent `Standing`, without asking whether they stood still since.
    CountUnconfirmed,
    /// A leader takes what a site said last, and any confirmation for one of that.
    CountMixed,
    /// A site lets itself be counted in the midst of a redistribution.
    CountInFlight,
    /// What a lost site had is left to be given out, instead of held.
    LostShareLeft,
    /// A list of Avantan\[\*\] with a lost member is dead, even if that may have got tokens by it.
    LostListDead,
    /// What an operator has freed is taken back again whenever the quota changes.
    FreedAgain,
    /// Of what a dropped quota gives back to those above it, what is held at other sites is left there.
    HeldLeftAbove,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 12] = [
        Planted::AsPrinted,
        Planted::UnfreezeOnTimeout,
        Planted::SlotReplay,
        Planted::AbortAfterAccept,
        Planted::ForgottenRequestId,
        Planted::CountUnconfirmed,
        Planted::CountMixed,
        Planted::CountInFlight,
        Planted::LostShareLeft,
        Planted::LostListDead,
        Planted::FreedAgain,
        Planted::HeldLeftAbove,
    ];
}
