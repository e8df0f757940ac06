//! The Order-Status transaction (clause 2.6): the state of a customer's last order. Read only.

use tokio_postgres::Row;

use super::customer::find;
use super::inputs::{CustomerChoice, Inputs};
use crate::client::postgres::{Access, Failure, Session, both, get};

const CUSTOMER: &str = "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
const LAST_ORDER: &str =
    "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1";
const LINES: &str = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";

/// A question as the user enters it.
#[derive(Clone, Debug)]
pub struct OrderStatus {
    w_id: i32,
    d_id: i32,
    customer: CustomerChoice,
}

impl OrderStatus {
    /// Draws the inputs (clause 2.6.1).
    pub fn draw(inputs: &mut Inputs<'_>) -> OrderStatus {
        OrderStatus { w_id: inputs.home.w_id, d_id: inputs.district(), customer: inputs.customer() }
    }
}

/// Attempts the transaction, and returns the lines of the order.
pub async fn attempt(session: &mut Session, status: &OrderStatus) -> Result<Vec<Row>, Failure> {
    session.begin(Access::ReadOnly).await?;
    let (w_id, d_id) = (status.w_id, status.d_id);
    let c_id = find(session, w_id, d_id, &status.customer).await?;
    let key = [w_id.into(), d_id.into(), c_id.into()];
    let (_, order) = both(session.query_one(CUSTOMER, &key), session.query_one(LAST_ORDER, &key)).await?;
    let lines = session.query(LINES, &[w_id.into(), d_id.into(), get::<i32>(&order, 0)?.into()]).await?;
    session.commit().await?;
    Ok(lines)
}
