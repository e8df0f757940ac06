//! Quotas as people see them.

use rhumb_display::Table;
use serde::Deserialize;
use std::fmt;

/// What is shown for what is not there.
const NONE: &str = "–";

/// What `GET /quotas` answers.
#[derive(Deserialize)]
pub struct Quotas {
    quotas: Vec<Quota>,
}

/// What `GET /quotas/{name}` answers.
#[derive(Deserialize)]
pub struct Quota {
    name: String,
    limit: u64,
    parent: Option<String>,
    protocol: String,
    offer: String,
    reallocation: String,
    read: String,
    #[serde(flatten)]
    all: Tokens,
    sites: Vec<SiteTokens>,
    missing: Vec<String>,
    booked: u64,
    freed: u64,
}

#[derive(Deserialize)]
struct SiteTokens {
    site: String,
    #[serde(flatten)]
    tokens: Tokens,
}

#[derive(Deserialize)]
struct Tokens {
    left: u64,
    held: u64,
    offered: u64,
    owed: u64,
}

impl Tokens {
    fn cells(&self) -> [String; 4] {
        [self.left, self.held, self.offered, self.owed].map(|tokens| tokens.to_string())
    }
}

impl fmt::Display for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(site) = self.quotas.iter().find_map(|quota| quota.sites.first()) else {
            return writeln!(f, "there are no quotas; `rhumb quota create NAME LIMIT` makes one");
        };
        let mut table = Table::new("quota")
            .group("", &["limit", "parent", "protocol", "offer"])
            .group("at this site", &["left", "held", "offered", "owed"]);
        for quota in &self.quotas {
            let parent = quota.parent.clone().unwrap_or_else(|| NONE.to_owned());
            let mut cells = vec![quota.name.clone(), quota.limit.to_string(), parent, quota.protocol.clone(), quota.offer.clone()];
            cells.extend(quota.all.cells());
            table.row(cells);
        }
        write!(f, "{table}\nthis site is {}; `rhumb quota get NAME --global` looks at all of them\n", site.site)
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quota { name, limit, protocol, offer, reallocation, read, .. } = self;
        let parent = self.parent.as_ref().map_or(String::new(), |parent| format!(" · below {parent}"));
        writeln!(f, "{name} · limit {limit}{parent} · protocol {protocol}, offer {offer}, reallocation {reallocation} · read {read}\n")?;
        let mut table = Table::new("site").group("", &["left", "held", "offered", "owed"]);
        for SiteTokens { site, tokens } in &self.sites {
            table.row(std::iter::once(site.clone()).chain(tokens.cells()).collect());
        }
        if self.sites.len() > 1 {
            table.rule();
            table.row(std::iter::once("all".to_owned()).chain(self.all.cells()).collect());
        }
        write!(f, "{table}")?;
        if !self.missing.is_empty() {
            writeln!(f, "\nno answer from {}; their tokens are not in the sum", self.missing.join(", "))?;
        }
        if self.booked > 0 {
            let Quota { booked, freed, .. } = self;
            writeln!(f, "\n{booked} were booked as held for lost sites; {freed} of these are freed at the sites above")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VM: &str = r#"{"name":"vm","limit":1000,"parent":"org","protocol":"any","offer":"spare","reallocation":"proportional","read":"global",
        "left":560,"held":7,"offered":90,"owed":0,"missing":["c/0"],"booked":9,"freed":4,
        "sites":[{"site":"a/0","left":493,"held":7,"offered":0,"owed":0},{"site":"b/0","left":67,"held":0,"offered":90,"owed":0}]}"#;

    #[test]
    fn a_quota_is_shown_by_site_with_its_sum_and_who_is_missing() {
        let quota: Quota = serde_json::from_str(VM).expect("what a site answers");
        let expected = [
            "vm · limit 1000 · below org · protocol any, offer spare, reallocation proportional · read global",
            "",
            "site   left   held  offered   owed",
            "──────────────────────────────────",
            "a/0     493      7        0      0",
            "b/0      67      0       90      0",
            "──────────────────────────────────",
            "all     560      7       90      0",
            "",
            "no answer from c/0; their tokens are not in the sum",
            "",
            "9 were booked as held for lost sites; 4 of these are freed at the sites above",
            "",
        ];
        assert_eq!(quota.to_string(), expected.join("\n"));
    }

    #[test]
    fn all_quotas_are_shown_with_the_tokens_of_the_site_asked() {
        let quotas: Quotas = serde_json::from_str(&format!(r#"{{"quotas":[{VM}]}}"#)).expect("what a site answers");
        let expected = [
            "                                       at this site ────────────────",
            "quota  limit  parent  protocol  offer   left   held  offered   owed",
            "────────────────────────────────────────────────────────────────────",
        ];
        let text = quotas.to_string();
        assert_eq!(text.lines().take(3).map(str::trim_end).collect::<Vec<_>>()[1], expected[1]);
        assert!(text.ends_with("this site is a/0; `rhumb quota get NAME --global` looks at all of them\n"), "{text}");
        let none: Quotas = serde_json::from_str(r#"{"quotas":[]}"#).expect("what a site answers");
        assert_eq!(none.to_string(), "there are no quotas; `rhumb quota create NAME LIMIT` makes one\n");
    }
}
