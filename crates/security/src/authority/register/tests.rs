//! Which tokens and certificates the register lets in, and when no more.

use super::*;

const NOW: SystemTime = UNIX_EPOCH;
const HOUR: Duration = Duration::from_hours(1);

fn grant(holds: Duration) -> Grant {
    Grant { site: None, names: vec![], holds }
}

fn member(region: &str, port: u16, request: &str) -> Member {
    Member { region: region.into(), shard: 0, peer: ([10, 0, 0, 1], port).into(), hosts: vec![], request: request.into() }
}

fn candidate(id: u8, member: Member) -> Candidate {
    Candidate { id: [id; 6], secret: TokenSecret([id; 32]), member }
}

fn new(regions: Vec<String>, sites_per_region: u16) -> Result<Register, RegisterError> {
    let site = SiteName::new("shop", "california", 0).expect("a name");
    Register::new(&site, ([10, 0, 0, 1], 8080).into(), regions, sites_per_region)
}

/// California has founded it, and there are the tokens 1 and 2.
fn forming() -> Register {
    let regions = ["california", "virginia", "oregon"].map(String::from).to_vec();
    let mut register = new(regions, 1).expect("a shape");
    register.found(member("california", 1, "c")).expect("the first");
    for id in [1, 2] {
        register.add_token([id; 6], &TokenSecret([id; 32]), grant(HOUR), NOW).expect("room");
    }
    register
}

fn refusal(register: &mut Register, candidate: &Candidate, now: SystemTime) -> String {
    let before = register.clone();
    let error = register.admit(candidate, false, now).expect_err("refused").to_string();
    assert_eq!(*register, before, "what is refused changes nothing");
    error
}

#[test]
fn a_token_lets_one_site_in_once() {
    let mut register = forming();
    let virginia = candidate(1, member("virginia", 2, "v"));
    assert!(register.admit(&virginia, false, NOW).expect("let in"));
    assert_eq!(register.missing(), ["oregon-0"]);
    // The answer was lost: it asks again.
    let after = register.clone();
    assert!(!register.admit(&virginia, false, NOW + HOUR / 2).expect("the same"));
    assert_eq!(register, after);
    let used = "the token was used already, by virginia-0; make another with `rhumb token create`";
    assert_eq!(refusal(&mut register, &candidate(1, member("oregon", 3, "o")), NOW), used);
    assert_eq!(refusal(&mut register, &candidate(1, member("virginia", 2, "another key")), NOW), used);
    assert!(refusal(&mut register, &candidate(2, member("virginia", 2, "v")), NOW).starts_with("virginia-0 has joined already"));
}

#[test]
fn an_altered_expired_or_revoked_token_changes_nothing() {
    let mut register = forming();
    let virginia = candidate(1, member("virginia", 2, "v"));
    let altered = Candidate { secret: TokenSecret([9; 32]), ..virginia.clone() };
    assert!(refusal(&mut register, &altered, NOW).starts_with("the token is unknown here"));
    assert!(refusal(&mut register, &candidate(9, member("virginia", 2, "v")), NOW).starts_with("the token is unknown here"));
    assert_eq!(refusal(&mut register, &virginia, NOW + HOUR), "the token has expired; make another with `rhumb token create`");
    assert!(register.revoke(&hex::encode([1; 6])));
    assert!(!register.revoke(&hex::encode([1; 6])), "it is gone");
    assert!(refusal(&mut register, &virginia, NOW).starts_with("the token is unknown here"));
}

#[test]
fn a_site_that_the_cluster_is_not_to_have_is_refused() {
    let mut register = forming();
    let mars = candidate(1, member("mars", 2, "m"));
    assert_eq!(
        refusal(&mut register, &mars, NOW),
        "the cluster is to have the regions california, virginia, oregon, and `mars` is none of them"
    );
    let second = candidate(1, Member { shard: 1, ..member("virginia", 2, "v") });
    assert_eq!(refusal(&mut register, &second, NOW), "there is no shard 1; regions have the shards 0 to 0");
    let taken = candidate(1, member("virginia", 1, "v"));
    assert_eq!(refusal(&mut register, &taken, NOW), "10.0.0.1:1 is the address of california-0 already");
    let host = candidate(1, Member { hosts: vec!["california-0.shop.rhumb.internal".into()], ..member("virginia", 2, "v") });
    assert!(refusal(&mut register, &host, NOW).contains("is no host name that a certificate may bear"));
}

#[test]
fn nobody_joins_a_cluster_that_is_complete() {
    let mut register = forming();
    register.admit(&candidate(1, member("virginia", 2, "v")), false, NOW).expect("let in");
    register.add_token([3; 6], &TokenSecret([3; 32]), grant(HOUR), NOW).expect("still forming");
    register.admit(&candidate(2, member("oregon", 3, "o")), false, NOW).expect("let in");
    assert!(register.is_complete());
    assert!(refusal(&mut register, &candidate(3, member("oregon", 3, "o")), NOW).starts_with("all sites have joined"));
    assert!(matches!(register.add_token([4; 6], &TokenSecret([4; 32]), grant(HOUR), NOW), Err(RegisterError::Complete)));
}

#[test]
fn a_register_is_read_back_and_keeps_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    create(folder.path(), &forming()).expect("made");
    let error = change(folder.path(), |register| {
        register.members.clear();
        Err::<(), _>(RegisterError::UnknownToken)
    });
    assert!(error.is_err());
    assert_eq!(read(folder.path()).expect("as before"), forming());
    change(folder.path(), |register| register.admit(&candidate(1, member("virginia", 2, "v")), false, NOW)).expect("let in");
    assert_eq!(read(folder.path()).expect("changed").missing(), ["oregon-0"]);
    let text = std::fs::read_to_string(folder.path().join(REGISTER_FILE)).expect("text");
    assert!(!text.contains(&hex::encode([1; 32])), "the digest alone is kept");
}

#[test]
fn a_shape_that_cannot_be_is_refused() {
    assert!(matches!(new(vec![], 1), Err(RegisterError::Shape)));
    assert!(matches!(new(vec!["a".into(), "a".into()], 1), Err(RegisterError::Shape)));
    assert!(matches!(new(vec!["a".into()], 0), Err(RegisterError::Shape)));
    assert!(matches!(new(vec!["a.b".into()], 1), Err(RegisterError::Name(_))));
    let mut register = forming();
    for holds in [Duration::ZERO, TOKEN_HOLDS_MAX + HOUR] {
        assert!(matches!(register.add_token([5; 6], &TokenSecret([5; 32]), grant(holds), NOW), Err(RegisterError::Holds)));
    }
}

#[test]
fn a_copy_of_a_site_and_its_token_gets_no_answer_once_the_site_has_arrived_or_the_token_has_expired() {
    let mut register = forming();
    let virginia = candidate(1, member("virginia", 2, "v"));
    register.admit(&virginia, false, NOW).expect("let in");
    for (has_arrived, now) in [(true, NOW), (false, NOW + HOUR)] {
        let error = register.admit(&virginia, has_arrived, now).expect_err("refused").to_string();
        assert!(error.starts_with("the token was used already, by virginia-0"), "{error}");
    }
}

#[test]
fn a_token_is_for_its_site_and_its_names_alone() {
    let mut register = forming();
    let named = Grant { site: Some("virginia-0".into()), names: vec!["db.example.com".into()], holds: HOUR };
    register.add_token([3; 6], &TokenSecret([3; 32]), named.clone(), NOW).expect("room");
    let with = |id, region: &str, hosts: &[&str]| {
        candidate(id, Member { hosts: hosts.iter().map(|&host| host.into()).collect(), ..member(region, 2, "v") })
    };
    assert_eq!(refusal(&mut register, &with(3, "oregon", &[]), NOW), "the token is for virginia-0; make another with `rhumb token create`");
    for (id, host) in [(3, "other.example.com"), (3, "localhost"), (1, "db.example.com")] {
        let error = refusal(&mut register, &with(id, "virginia", &[host]), NOW);
        assert!(error.starts_with(&format!("the token is for no site that is called `{host}`")), "{error}");
    }
    let mut here = with(1, "oregon", &["localhost"]);
    here.member.peer = ([127, 0, 0, 3], 3).into();
    register.admit(&here, false, NOW).expect("on the loopback every machine is called so");
    register.admit(&with(3, "virginia", &["db.example.com"]), false, NOW).expect("as it was granted");
    let mut register = forming();
    for site in ["california-0", "mars-0"] {
        let grant = Grant { site: Some(site.into()), ..named.clone() };
        assert!(matches!(register.add_token([4; 6], &TokenSecret([4; 32]), grant, NOW), Err(RegisterError::NotMissing(_))));
    }
    let foreign = Grant { names: vec!["oregon-0.shop.rhumb.internal".into()], ..named };
    assert!(matches!(register.add_token([4; 6], &TokenSecret([4; 32]), foreign, NOW), Err(RegisterError::Name(_))));
}

#[test]
fn tokens_that_have_expired_unused_make_room() {
    let mut register = forming();
    for id in 2..TOKENS_MAX as u64 {
        let bytes = id.to_be_bytes();
        register.add_token(bytes[2..].try_into().expect("six"), &TokenSecret([7; 32]), grant(HOUR), NOW).expect("room");
    }
    let more = |register: &mut Register, now| register.add_token([9; 6], &TokenSecret([9; 32]), grant(HOUR), now);
    assert!(matches!(more(&mut register, NOW), Err(RegisterError::TooManyTokens)));
    more(&mut register, NOW + HOUR).expect("the others have expired");
    assert_eq!(register.tokens.len(), 1);
}
