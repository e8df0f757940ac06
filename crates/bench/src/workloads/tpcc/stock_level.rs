//! The Stock-Level transaction (clause 2.8): how many items of a district's last twenty orders are low in stock. Read only.
//!
//! The join is done here: the items of the recent lines are read first, then their stocks by key. A server that joined would have to read them all the same.

use std::collections::BTreeSet;

use super::inputs::Inputs;
use crate::client::postgres::{Access, Failure, Session, Value, get, placeholders};

/// Orders looked back upon.
const ORDERS: i32 = 20;

/// IN lists are padded to a multiple of this, so that few statements differ.
const LIST_STEP: usize = 50;

const DISTRICT: &str = "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2";
const LINES: &str = "SELECT ol_i_id FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4";

/// A question as the user enters it.
#[derive(Clone, Debug)]
pub struct StockLevel {
    w_id: i32,
    d_id: i32,
    threshold: i32,
}

impl StockLevel {
    /// Draws the inputs (clause 2.8.1).
    pub fn draw(inputs: &mut Inputs<'_>) -> StockLevel {
        StockLevel { w_id: inputs.home.w_id, d_id: inputs.home.d_id, threshold: inputs.rng.between(10, 20) as i32 }
    }
}

/// Attempts the transaction, and returns the number of items low in stock.
pub async fn attempt(session: &mut Session, level: &StockLevel) -> Result<i64, Failure> {
    session.begin(Access::ReadOnly).await?;
    let place = [level.w_id.into(), level.d_id.into()];
    let next: i32 = get(&session.query_one(DISTRICT, &place).await?, 0)?;
    let recent = [&place[..], &[(next - ORDERS).into(), next.into()]].concat();
    let lines = session.query(LINES, &recent).await?;
    let items: BTreeSet<i32> = lines.iter().map(|line| get(line, 0)).collect::<Result<_, Failure>>()?;
    let low = match padded(&items) {
        list if list.is_empty() => 0,
        list => {
            let sql =
                format!("SELECT COUNT(*) FROM stock WHERE s_w_id = $1 AND s_quantity < $2 AND s_i_id IN ({})", placeholders(3, list.len()));
            let values: Vec<Value> = [level.w_id, level.threshold].into_iter().chain(list).map(Value::Int).collect();
            get(&session.query_one(&sql, &values).await?, 0)?
        }
    };
    session.commit().await?;
    Ok(low)
}

/// The items, the last one repeated up to a multiple of [`LIST_STEP`]: in an IN list that changes nothing.
fn padded(items: &BTreeSet<i32>) -> Vec<i32> {
    let mut list: Vec<i32> = items.iter().copied().collect();
    if let Some(last) = list.last().copied() {
        list.resize(list.len().next_multiple_of(LIST_STEP), last);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_in_few_lengths() {
        assert_eq!(padded(&BTreeSet::new()), Vec::<i32>::new());
        let list = padded(&(1..=51).collect());
        assert_eq!((list.len(), list[50], list[99]), (100, 51, 51));
        assert_eq!(padded(&(1..=50).collect()).len(), 50);
    }
}
