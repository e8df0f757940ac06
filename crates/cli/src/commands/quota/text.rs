//! Quotas as people see them.

use rhumb_api::quotas::{Quota, Quotas, SiteTokens, Spec, Tokens};
use rhumb_display::Table;
use std::fmt::Write;

/// What is shown for what is not there.
const NONE: &str = "–";

fn cells(tokens: &Tokens) -> [String; 4] {
    [tokens.left, tokens.held, tokens.offered, tokens.owed].map(|tokens| tokens.to_string())
}

/// All quotas, with the tokens of one site.
pub fn quotas(quotas: &Quotas) -> String {
    let Some(site) = quotas.quotas.iter().find_map(|quota| quota.sites.first()) else {
        return "there are no quotas; `rhumb quota create NAME LIMIT` makes one\n".to_owned();
    };
    let mut table = Table::new("quota")
        .group("", &["limit", "parent", "protocol", "offer"])
        .group("at this site", &["left", "held", "offered", "owed"]);
    for Quota { spec: Spec { name, limit, parent, protocol, offer, .. }, tokens, .. } in &quotas.quotas {
        let parent = parent.clone().unwrap_or_else(|| NONE.to_owned());
        let mut row = vec![name.clone(), limit.to_string(), parent, protocol.to_string(), offer.to_string()];
        row.extend(cells(tokens));
        table.row(row);
    }
    format!("{table}\nthis site is {}; `rhumb quota get NAME --global` looks at all of them\n", site.site)
}

/// One quota, site by site.
pub fn quota(quota: &Quota) -> String {
    let Quota { spec: Spec { name, limit, parent, protocol, offer, reallocation }, read, .. } = quota;
    let parent = parent.as_ref().map_or(String::new(), |parent| format!(" · below {parent}"));
    let mut text =
        format!("{name} · limit {limit}{parent} · protocol {protocol}, offer {offer}, reallocation {reallocation} · read {read}\n\n");
    let mut table = Table::new("site").group("", &["left", "held", "offered", "owed"]);
    for SiteTokens { site, tokens, .. } in &quota.sites {
        table.row(std::iter::once(site.clone()).chain(cells(tokens)).collect());
    }
    if quota.sites.len() > 1 {
        table.rule();
        table.row(std::iter::once("all".to_owned()).chain(cells(&quota.tokens)).collect());
    }
    text += &table.to_string();
    if !quota.missing.is_empty() {
        let _ = writeln!(text, "\nno answer from {}; their tokens are not in the sum", quota.missing.join(", "));
    }
    if quota.booked > 0 {
        let Quota { booked, freed, .. } = quota;
        let _ = writeln!(text, "\n{booked} were booked as held for lost sites; {freed} of these are freed at the sites above");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const VM: &str = r#"{"name":"vm","limit":1000,"parent":"org","protocol":"any","offer":"spare","reallocation":"proportional","read":"global",
        "left":560,"held":7,"offered":90,"owed":0,"missing":["c/0"],"booked":9,"freed":4,
        "sites":[{"site":"a/0","left":493,"held":7,"offered":0,"owed":0,"freed":4},{"site":"b/0","left":67,"held":0,"offered":90,"owed":0,"freed":0}]}"#;

    #[test]
    fn a_quota_is_shown_by_site_with_its_sum_and_who_is_missing() {
        let vm: Quota = serde_json::from_str(VM).expect("what a site answers");
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
        assert_eq!(quota(&vm), expected.join("\n"));
    }

    #[test]
    fn all_quotas_are_shown_with_the_tokens_of_the_site_asked() {
        let all: Quotas = serde_json::from_str(&format!(r#"{{"quotas":[{VM}]}}"#)).expect("what a site answers");
        let expected = [
            "                                       at this site ────────────────",
            "quota  limit  parent  protocol  offer   left   held  offered   owed",
            "────────────────────────────────────────────────────────────────────",
        ];
        let text = quotas(&all);
        assert_eq!(text.lines().take(3).map(str::trim_end).collect::<Vec<_>>()[1], expected[1]);
        assert!(text.ends_with("this site is a/0; `rhumb quota get NAME --global` looks at all of them\n"), "{text}");
        let none: Quotas = serde_json::from_str(r#"{"quotas":[]}"#).expect("what a site answers");
        assert_eq!(quotas(&none), "there are no quotas; `rhumb quota create NAME LIMIT` makes one\n");
    }
}
