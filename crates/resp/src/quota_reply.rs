//! A quota as a reply: a map of its limit, its choices, its tokens in sum and by site.

use crate::reply::Replies;
use crate::session::Vitals;
use rhumb_quota::info::{Info, SiteTokens};
use std::fmt::Display;

/// Writes a quota.
pub fn put_quota(replies: &mut Replies, info: &Info, vitals: &Vitals) {
    replies.map(13);
    text(replies, "name", &info.name);
    number(replies, "limit", info.spec.limit);
    number(replies, "left", info.left());
    number(replies, "held", info.held());
    number(replies, "offered", info.offered());
    number(replies, "owed", info.owed());
    match &info.spec.parent {
        Some(parent) => text(replies, "parent", parent),
        None => {
            replies.bulk("parent");
            replies.null();
        }
    }
    text(replies, "protocol", info.spec.protocol);
    text(replies, "offer", info.spec.offer);
    text(replies, "reallocation", info.spec.reallocation);
    text(replies, "read", info.read);
    replies.bulk("sites");
    replies.array(info.sites.len());
    for tokens in &info.sites {
        put_site(replies, tokens, vitals);
    }
    replies.bulk("missing");
    replies.array(info.missing.len());
    for &site in &info.missing {
        replies.bulk(vitals.site_name(site));
    }
}

fn put_site(replies: &mut Replies, tokens: &SiteTokens, vitals: &Vitals) {
    replies.map(5);
    text(replies, "site", vitals.site_name(tokens.site));
    number(replies, "left", tokens.left);
    number(replies, "held", tokens.held);
    number(replies, "offered", tokens.offered);
    number(replies, "owed", tokens.owed);
}

fn text(replies: &mut Replies, key: &str, value: impl Display) {
    replies.bulk(key);
    replies.bulk(value.to_string());
}

fn number(replies: &mut Replies, key: &str, value: u64) {
    replies.bulk(key);
    replies.integer(value);
}
