//! Schedules to be read: what happens to each member, and what it says then.

/// An input of a member.
pub struct Move {
    /// How many messages had been said before.
    pub time: usize,
    pub member: String,
    pub input: String,
}

/// What one member says at a time.
pub struct Spoken {
    pub member: String,
    pub words: String,
}

/// One line for each input, where a member has spoken at each time.
pub fn lines(mut moves: Vec<Move>, spoken: &[Spoken]) -> Vec<String> {
    // Whoever says something does so by the last of the inputs before that.
    moves.sort_by_key(|Move { time, member, .. }| (*time, *member == spoken[*time].member));
    let line = |(number, Move { time, member, input }): (usize, &Move)| {
        let is_last = moves.get(number + 1).is_none_or(|next| next.time > *time);
        let says = if is_last { format!(" ─▶ {}", spoken[*time].words) } else { String::new() };
        format!("{member}: {input}{says}")
    };
    moves.iter().enumerate().map(line).collect()
}
