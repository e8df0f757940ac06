//! The consistency conditions of clause 3.3.2, each a query for what breaks it.
//!
//! Condition 11 holds literally only before the first delivery. It is checked in a form that holds always: orders less new orders are the orders delivered
//! at first plus the deliveries that the customers count. On a fresh database that is the specification's 2100.

use super::NAME;
use super::scale::Scale;
use crate::client::postgres::Session;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::tables::{CheckReport, Rule, evaluate, ledger};

/// Checks the twelve conditions.
pub async fn check(session: &mut Session, progress: &dyn Progress) -> Result<CheckReport, BenchError> {
    let scale = Scale::from_parameters(&ledger::read(session, NAME).await?)?;
    evaluate(session, NAME, &rules(scale), progress).await
}

fn rules(scale: Scale) -> Vec<Rule> {
    let text = [
        ("W_YTD is the sum of D_YTD", YTD.to_owned()),
        ("D_NEXT_O_ID - 1 is the highest O_ID, and the highest NO_O_ID if there is one", NEXT_ORDER.to_owned()),
        ("NO_O_ID has no gaps in a district", GAPS.to_owned()),
        ("the sum of O_OL_CNT is the number of order lines of a district", LINES_OF_DISTRICT.to_owned()),
        ("O_CARRIER_ID is null if and only if there is a new order", NEW_ORDERS.to_owned()),
        ("O_OL_CNT is the number of lines of an order", LINES_OF_ORDER.to_owned()),
        ("OL_DELIVERY_D is null if and only if O_CARRIER_ID is", DELIVERED.to_owned()),
        ("W_YTD is the sum of H_AMOUNT", HISTORY_OF_WAREHOUSE.to_owned()),
        ("D_YTD is the sum of H_AMOUNT", HISTORY_OF_DISTRICT.to_owned()),
        ("C_BALANCE is the sum of delivered OL_AMOUNT less the sum of H_AMOUNT", balance()),
        ("orders less new orders are the orders delivered", deliveries(scale)),
        ("C_BALANCE + C_YTD_PAYMENT is the sum of delivered OL_AMOUNT", spent()),
    ];
    (1..).zip(text).map(|(number, (title, offenders))| Rule { number, title, offenders }).collect()
}

const YTD: &str = "\
SELECT w_id, w_ytd, d_sum FROM warehouse
LEFT JOIN (SELECT d_w_id, SUM(d_ytd) AS d_sum FROM district GROUP BY d_w_id) AS d ON d_w_id = w_id
WHERE d_sum IS NULL OR w_ytd <> d_sum";

const NEXT_ORDER: &str = "\
SELECT d_w_id, d_id, d_next_o_id, o_max, no_max FROM district
LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS o_max FROM orders GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS no_max FROM new_order GROUP BY no_w_id, no_d_id) AS n ON no_w_id = d_w_id AND no_d_id = d_id
WHERE o_max IS NULL OR d_next_o_id - 1 <> o_max OR (no_max IS NOT NULL AND d_next_o_id - 1 <> no_max)";

const GAPS: &str = "\
SELECT no_w_id, no_d_id, no_min, no_max, no_count FROM
(SELECT no_w_id, no_d_id, MIN(no_o_id) AS no_min, MAX(no_o_id) AS no_max, COUNT(*) AS no_count FROM new_order GROUP BY no_w_id, no_d_id) AS n
WHERE no_max - no_min + 1 <> no_count";

const LINES_OF_DISTRICT: &str = "\
SELECT o_w_id, o_d_id, ol_cnt_sum, lines FROM
(SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS ol_cnt_sum FROM orders GROUP BY o_w_id, o_d_id) AS o
FULL JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS lines FROM order_line GROUP BY ol_w_id, ol_d_id) AS l ON ol_w_id = o_w_id AND ol_d_id = o_d_id
WHERE ol_cnt_sum IS NULL OR lines IS NULL OR ol_cnt_sum <> lines";

const NEW_ORDERS: &str = "\
SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_w_id, no_d_id, no_o_id FROM orders
FULL JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
WHERE o_id IS NULL OR (o_carrier_id IS NULL AND no_o_id IS NULL) OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL)";

const LINES_OF_ORDER: &str = "\
SELECT o_w_id, o_d_id, o_id, o_ol_cnt, ol_w_id, ol_d_id, ol_o_id, lines FROM orders
FULL JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS lines FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l
ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
WHERE o_id IS NULL OR lines IS NULL OR o_ol_cnt <> lines";

const DELIVERED: &str = "\
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id FROM order_line
JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
WHERE (ol_delivery_d IS NULL AND o_carrier_id IS NOT NULL) OR (ol_delivery_d IS NOT NULL AND o_carrier_id IS NULL)";

const HISTORY_OF_WAREHOUSE: &str = "\
SELECT w_id, w_ytd, h_sum FROM warehouse
LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS h_sum FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id
WHERE h_sum IS NULL OR w_ytd <> h_sum";

const HISTORY_OF_DISTRICT: &str = "\
SELECT d_w_id, d_id, d_ytd, h_sum FROM district
LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS h_sum FROM history GROUP BY h_w_id, h_d_id) AS h ON h_w_id = d_w_id AND h_d_id = d_id
WHERE h_sum IS NULL OR d_ytd <> h_sum";

/// What a customer's delivered orders cost.
const DELIVERED_SUMS: &str = "\
(SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS ol_sum FROM orders
JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS l ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id";

fn balance() -> String {
    format!(
        "SELECT c_w_id, c_d_id, c_id, c_balance, ol_sum, h_sum FROM customer LEFT JOIN {DELIVERED_SUMS}
LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS h_sum FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h
ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
WHERE c_balance <> COALESCE(ol_sum, 0) - COALESCE(h_sum, 0)"
    )
}

fn deliveries(scale: Scale) -> String {
    let delivered = scale.delivered_initially();
    format!(
        "SELECT c_w_id, c_d_id, deliveries, o_count, no_count FROM
(SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS deliveries FROM customer GROUP BY c_w_id, c_d_id) AS c
LEFT JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS o_count FROM orders GROUP BY o_w_id, o_d_id) AS o ON o_w_id = c_w_id AND o_d_id = c_d_id
LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS no_count FROM new_order GROUP BY no_w_id, no_d_id) AS n ON no_w_id = c_w_id AND no_d_id = c_d_id
WHERE COALESCE(o_count, 0) - COALESCE(no_count, 0) <> {delivered} + deliveries"
    )
}

fn spent() -> String {
    format!(
        "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, ol_sum FROM customer LEFT JOIN {DELIVERED_SUMS}
WHERE c_balance + c_ytd_payment <> COALESCE(ol_sum, 0)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twelve_conditions_are_numbered_as_in_the_specification() {
        let numbers: Vec<u32> = rules(Scale::conforming(1)).iter().map(|rule| rule.number).collect();
        assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
        assert!(deliveries(Scale::conforming(1)).contains("<> 2100 + deliveries"));
    }
}
