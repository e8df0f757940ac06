//! The physical floor of a commit: the round trip from a region to the nearest regions that complete a majority with it.
//!
//! A server that knows its cluster tells by `SHOW REGIONS`; any other has no floor to compare with.

use super::failure::Failure;
use super::session::{Session, TextRow};

/// What a server says about where it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Whereabouts {
    /// The name of the server's own region.
    pub region: Option<String>,
    /// The round trip to the nearest majority, in milliseconds.
    pub floor_ms: Option<f64>,
}

/// Asks the server where it is. A server that does not know the question has no whereabouts; a lost connection is a failure.
pub async fn whereabouts(session: &mut Session) -> Result<Whereabouts, Failure> {
    match session.query_text("SHOW REGIONS").await {
        Ok(rows) => Ok(read(&rows)),
        Err(Failure::Refused { .. }) => Ok(Whereabouts::default()),
        Err(other) => Err(other),
    }
}

fn read(rows: &[TextRow]) -> Whereabouts {
    let is_local = |row: &&TextRow| field(row, "local").is_some_and(|text| matches!(text.as_str(), "t" | "true" | "on" | "yes"));
    let Some(local) = rows.iter().find(is_local) else {
        return Whereabouts::default();
    };
    let told = field(local, "floor_ms").and_then(|text| text.parse().ok());
    Whereabouts { region: field(local, "name"), floor_ms: told.or_else(|| nearest_majority(rows)) }
}

fn field(row: &TextRow, name: &str) -> Option<String> {
    row.iter().find(|(column, _)| column == name)?.1.clone()
}

/// The floor from the round trips alone: sorted, with the own region at zero, the one that completes a majority.
fn nearest_majority(rows: &[TextRow]) -> Option<f64> {
    let rtts: Option<Vec<f64>> = rows.iter().map(|row| field(row, "rtt_ms")?.parse().ok()).collect();
    let mut rtts = rtts?;
    rtts.sort_by(f64::total_cmp);
    rtts.get(rows.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, local: &str, rtt_ms: &str, floor_ms: Option<&str>) -> TextRow {
        let some = |text: &str| Some(text.to_owned());
        let fields = [("name", some(name)), ("local", some(local)), ("rtt_ms", some(rtt_ms)), ("floor_ms", floor_ms.map(str::to_owned))];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn the_floor_is_the_one_told_by_the_local_region() {
        let rows = [row("c", "f", "21", Some("22")), row("o", "t", "0", Some("101.5"))];
        assert_eq!(read(&rows), Whereabouts { region: Some("o".into()), floor_ms: Some(101.5) });
    }

    #[test]
    fn without_it_the_nearest_majority_counts() {
        let five = ["0", "21", "86", "159", "173"].map(|rtt| row(rtt, if rtt == "0" { "true" } else { "false" }, rtt, None));
        assert_eq!(read(&five).floor_ms, Some(86.0));
        assert_eq!(read(&five[..4]).floor_ms, Some(86.0));
        assert_eq!(read(&five[..1]).floor_ms, Some(0.0));
    }

    #[test]
    fn a_server_without_regions_has_no_floor() {
        assert_eq!(read(&[]), Whereabouts::default());
    }
}
