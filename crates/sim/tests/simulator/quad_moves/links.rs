//! One link stays cut, while quorums follow what is measured: as few sites as can be stand still for it, and roles do not go to and fro.

use super::stage::*;
use rhumb_core::{SiteId, Span};
use rhumb_quad::Site;
use rhumb_sim::{Fault, Links, Place, World};

/// The world of these quorums ten seconds after a link was cut.
fn cut(cores: &[SiteId], slaves: &[SiteId], one: SiteId, other: SiteId) -> World<Site> {
    let mut world = world_with(cores.len() + slaves.len(), quorums(cores, slaves), adaptation(None));
    surely(&mut world, C, Some("v"));
    let links = Links::new(Place::Site(one), Place::Site(other));
    world.strike(&Fault::Cut { links, span: None });
    world.strike(&Fault::Cut { links: links.reversed(), span: None });
    world.run_for(Span::from_secs(10)).expect("nothing else goes wrong");
    world
}

/// How many configurations these sites have been through when each has written twenty times.
fn changes_while_all_write(world: &mut World<Site>, sites: &[SiteId]) -> u64 {
    for round in 0..20 {
        for site in sites {
            surely(world, *site, Some(&format!("{round}")));
        }
    }
    epoch(world, C).0 - 1
}

#[test]
fn a_link_cut_between_two_cores_stops_no_site() {
    let mut world = cut(&[A, B, C], &[D, E], A, B);
    let changes = changes_while_all_write(&mut world, &[A, B, C, D, E]);
    assert!(changes <= 2, "{changes} changes; cores {:?}", cores(&world, C));
}

#[test]
fn a_link_cut_between_a_core_and_a_slave_stops_no_site() {
    let mut world = cut(&[A, B], &[C, D, E], A, C);
    let changes = changes_while_all_write(&mut world, &[A, B, C, D, E]);
    assert!(changes <= 2, "{changes} changes; cores {:?}", cores(&world, C));
}

#[test]
fn where_too_few_sites_are_heard_by_all_a_cut_link_stops_one_site_and_no_other() {
    let mut world = cut(&[A, B], &[C], A, C);
    assert_eq!(changes_while_all_write(&mut world, &[A, B]), 0, "C finds no quorum and does not take the place of a core that others hear");
    let mut world = cut(&[A, B], &[C], A, B);
    let cores_then = cores(&world, C);
    let changes = changes_while_all_write(&mut world, &cores_then);
    assert!(changes <= 2, "{changes} changes; cores {:?}", cores(&world, C));
}
