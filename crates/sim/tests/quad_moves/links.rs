//! One link cut between two cores, while quorums follow what is measured: no site stands still for it.

use super::stage::*;
use rhumb_core::Span;
use rhumb_sim::{Fault, Links, Place};

#[test]
fn a_link_cut_between_two_cores_stops_no_site() {
    let mut world = world_with(5, quorums(&[A, B, C], &[D, E]), adaptation(None));
    surely(&mut world, C, Some("v"));
    let links = Links::new(Place::Site(A), Place::Site(B));
    world.strike(&Fault::Cut { links, span: None });
    world.strike(&Fault::Cut { links: links.reversed(), span: None });
    world.run_for(Span::from_secs(10)).expect("nothing else goes wrong");
    let (began, before) = (world.now(), epoch(&world, C));
    for round in 0..20 {
        for site in [A, B, C, D, E] {
            surely(&mut world, site, Some(&format!("{round}")));
        }
    }
    let (took, changes) = (world.now().since(began), epoch(&world, C).0 - before.0);
    println!("{changes} changes in {took} s; cores {:?}", cores(&world, C));
    assert!(changes <= 3, "{changes} changes in {took} s");
}
