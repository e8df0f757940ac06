//! The Delivery transaction (clause 2.7): a carrier takes the oldest new order of each of the ten districts.
//!
//! Clause 2.7.2 lets it be up to ten database transactions. It is ten here, one per district: a conflict in one district then costs no other its work, and a
//! retry goes on where the last attempt stopped.

use chrono::NaiveDateTime;
use rust_decimal::Decimal;

use super::inputs::Inputs;
use super::scale::DISTRICTS;
use crate::client::postgres::{Access, Failure, Session, both, get};

const OLDEST: &str = "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1";
const TAKE: &str = "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3";
const ORDER: &str = "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id";
const LINES: &str = "UPDATE order_line SET ol_delivery_d = $4 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount";
const CUSTOMER: &str = "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

/// A delivery and the districts it has yet to visit.
#[derive(Clone, Debug)]
pub struct Delivery {
    w_id: i32,
    carrier: i32,
    delivered: NaiveDateTime,
    next_d_id: i32,
}

impl Delivery {
    /// Draws the inputs (clause 2.7.1).
    pub fn draw(inputs: &mut Inputs<'_>) -> Delivery {
        Delivery { w_id: inputs.home.w_id, carrier: inputs.rng.between(1, 10) as i32, delivered: inputs.now, next_d_id: 1 }
    }

    /// Attempts what is left of the delivery.
    pub async fn attempt(&mut self, session: &mut Session) -> Result<(), Failure> {
        while self.next_d_id <= DISTRICTS {
            self.visit(session, self.next_d_id).await?;
            self.next_d_id += 1;
        }
        Ok(())
    }

    async fn visit(&self, session: &mut Session, d_id: i32) -> Result<(), Failure> {
        session.begin(Access::ReadWrite).await?;
        let place = [self.w_id.into(), d_id.into()];
        let Some(oldest) = session.query(OLDEST, &place).await?.into_iter().next() else {
            // Nothing to deliver: the district is skipped (clause 2.7.4.2).
            return session.commit().await;
        };
        let order = [&place[..], &[get::<i32>(&oldest, 0)?.into()]].concat();
        let with_carrier = [&order[..], &[self.carrier.into()]].concat();
        let with_date = [&order[..], &[self.delivered.into()]].concat();
        let orders = both(session.execute(TAKE, &order), session.query_one(ORDER, &with_carrier));
        let ((taken, owner), lines) = both(orders, session.query(LINES, &with_date)).await?;
        if taken != 1 {
            let reason = format!("deleting the oldest new order of district {d_id} changed {taken} rows");
            return Err(Failure::Refused { code: None, reason });
        }
        let amounts: Result<Vec<Decimal>, Failure> = lines.iter().map(|line| get(line, 0)).collect();
        let due: Decimal = amounts?.into_iter().sum();
        session.execute(CUSTOMER, &[&place[..], &[get::<i32>(&owner, 0)?.into(), due.into()]].concat()).await?;
        session.commit().await
    }
}
