//! Inputs, stock arithmetic and prices of New-Order.

use rhumb_core::Rng;

use super::super::home::Home;
use super::super::random::NuRand;
use super::super::scale::Scale;
use super::*;

fn orders(count: usize) -> Vec<NewOrder> {
    let mut rng = Rng::seeded(7);
    let scale = Scale::conforming(4);
    let nurand = NuRand::for_run(scale, &mut rng);
    let home = Home { w_id: 3, d_id: 1 };
    (0..count).map(|_| NewOrder::draw(&mut Inputs { home, scale, nurand, rng: &mut rng, now: NaiveDateTime::default() })).collect()
}

fn stock(quantity: i32) -> Stock {
    Stock { quantity, ytd: 100, order_count: 7, remote_count: 1, district_info: "info".into() }
}

#[test]
fn one_order_in_a_hundred_names_an_item_that_does_not_exist() {
    let orders = orders(20_000);
    let bad = orders.iter().filter(|order| order.lines.iter().any(|line| line.i_id > 100_000)).count();
    assert!((150..250).contains(&bad), "{bad}");
    assert!(orders.iter().all(|order| order.lines[..order.lines.len() - 1].iter().all(|line| line.i_id <= 100_000)));
}

#[test]
fn one_line_in_a_hundred_is_supplied_from_elsewhere() {
    let orders = orders(20_000);
    let lines: Vec<&Line> = orders.iter().flat_map(|order| &order.lines).collect();
    let mean = lines.len() as f64 / orders.len() as f64;
    assert!((mean - 10.0).abs() < 0.1, "{mean} lines per order");
    let remote = lines.iter().filter(|line| line.supply_w_id != 3).count() as f64 / lines.len() as f64;
    assert!((0.009..0.011).contains(&remote), "{remote}");
}

#[test]
fn stock_is_refilled_below_ten() {
    let mut plenty = stock(20);
    plenty.take(10, false);
    assert_eq!((plenty.quantity, plenty.ytd, plenty.order_count, plenty.remote_count), (10, 110, 8, 1));
    let mut scarce = stock(20);
    scarce.take(11 - 1, false);
    scarce.take(1, true);
    assert_eq!((scarce.quantity, scarce.ytd, scarce.order_count, scarce.remote_count), (100, 111, 9, 2));
}

#[test]
fn one_statement_updates_all_stocks_of_a_warehouse() {
    let (first, second) = (stock(50), stock(60));
    let (sql, values) = stock_update(3, &[(11, &first), (12, &second)]);
    let expect = "UPDATE stock SET s_quantity = CASE s_i_id WHEN $2 THEN $4 WHEN $3 THEN $5 END, \
                  s_ytd = CASE s_i_id WHEN $2 THEN $6 WHEN $3 THEN $7 END, s_order_cnt = CASE s_i_id WHEN $2 THEN $8 WHEN $3 THEN $9 END, \
                  s_remote_cnt = CASE s_i_id WHEN $2 THEN $10 WHEN $3 THEN $11 END WHERE s_w_id = $1 AND s_i_id IN ($2, $3)";
    assert_eq!(sql, expect);
    assert_eq!(values, [3, 11, 12, 50, 60, 100, 100, 7, 7, 1, 1].map(Value::Int));
}

#[test]
fn the_total_takes_discount_and_taxes() {
    let lines = [Line { i_id: 1, supply_w_id: 1, quantity: 2 }, Line { i_id: 2, supply_w_id: 1, quantity: 1 }];
    let prices = Prices::from([(1, Decimal::new(1_000, 2)), (2, Decimal::new(500, 2))]);
    let rates = Rates { w_tax: Decimal::new(1_000, 4), d_tax: Decimal::new(1_000, 4), discount: Decimal::new(2_000, 4) };
    assert_eq!(total(&lines, &prices, &rates), Decimal::new(2_400, 2));
}
