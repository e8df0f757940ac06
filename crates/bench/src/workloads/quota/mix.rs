//! What clients ask for: as the creations and deletions of virtual machines in the shipped trace, or by shares.

use std::fmt;
use std::str::FromStr;

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Creations acquire and deletions release, in the order of the trace; each region is at another hour of the day.
    Trace,
    /// So many acquisitions to so many releases.
    Shares(u32, u32),
}

impl FromStr for Mix {
    type Err = String;
    fn from_str(text: &str) -> Result<Mix, String> {
        if text == "trace" {
            return Ok(Mix::Trace);
        }
        let shares = text.split_once(':').and_then(|(acquire, release)| Some((acquire.parse().ok()?, release.parse().ok()?)));
        match shares {
            Some((acquire, release)) if acquire > 0 => Ok(Mix::Shares(acquire, release)),
            _ => Err("expected `trace`, or ACQUIRE:RELEASE, such as 50:50".to_owned()),
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mix::Trace => f.write_str("mix of the trace"),
            Mix::Shares(acquire, release) => write!(f, "mix {acquire}:{release}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_written_as_shares_or_as_the_trace() {
        assert_eq!("50:50".parse(), Ok(Mix::Shares(50, 50)));
        assert_eq!("trace".parse(), Ok(Mix::Trace));
        for wrong in ["", "50", "0:1", "-1:2", "a:b"] {
            assert!(wrong.parse::<Mix>().is_err(), "{wrong}");
        }
    }
}
