//! The planner's tables about regions in CSV (clients, prices, groups, capacity, positions): never panics; what is read names known regions once
//! each.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_plan::{Constraint, Matrix, Prices, capacity, places, workload};

fuzz_target!(|text: &str| {
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    let matrix = Matrix::new(names, |_, _| 1_000).expect("three regions");
    if let Ok(clients) = workload::parse("clients.csv", text, &matrix, 2_500) {
        assert!(clients.windows(2).all(|pair| pair[0].region < pair[1].region));
        assert!(clients.iter().all(|client| client.region < 3 && client.clients > 0));
    }
    if let Ok(prices) = Prices::parse("prices.csv", text, &matrix) {
        assert_eq!((prices.replica_month.len(), prices.gigabyte_sent.len()), (3, 3));
    }
    if let Ok(capacity) = capacity::parse("capacity.csv", text, &matrix) {
        assert!(matches!(capacity, Constraint::Capacity(clients) if clients.len() == 3));
    }
    if let Ok(positions) = places::positions_of_table("places.csv", text, &matrix) {
        assert!(positions.iter().all(|at| at.latitude.abs() <= 900_000 && at.longitude.abs() <= 1_800_000));
    }
    if let Ok(groups) = places::groups_of_table("groups.csv", text, &matrix, "provider") {
        assert!(groups.of.len() == 3 && groups.of.iter().all(|&group| (group as usize) < groups.names.len()));
    }
});
