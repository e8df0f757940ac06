//! The Payment transaction (clause 2.5): a customer pays; district and warehouse count it; 15 % of the customers belong to another warehouse.
//!
//! ```text
//! (customer by last name, six times of ten)
//! warehouse · district · customer               one burst of writes that return what was there
//! history · (customer data, for the tenth with bad credit)
//! COMMIT
//! ```

use chrono::NaiveDateTime;
use rust_decimal::Decimal;

use super::customer::find;
use super::inputs::{CustomerChoice, Inputs};
use super::random::decimal;
use crate::client::postgres::{Access, Failure, Session, Value, both, get};

const WAREHOUSE: &str =
    "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip";
const DISTRICT: &str = "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
     RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip";
const CUSTOMER: &str = "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1 \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 RETURNING c_credit, c_data, c_balance, c_first, c_middle, c_last, c_street_1, c_street_2, \
     c_city, c_state, c_zip, c_phone, c_since, c_credit_lim, c_discount";
const CUSTOMER_DATA: &str = "UPDATE customer SET c_data = $4 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
const HISTORY: &str = "INSERT INTO history (h_w_id, h_id, h_c_w_id, h_c_d_id, h_c_id, h_d_id, h_date, h_amount, h_data) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// Letters that C_DATA holds.
const DATA_LETTERS_MAX: usize = 500;

/// A payment as the user enters it.
#[derive(Clone, Debug)]
pub struct Payment {
    w_id: i32,
    d_id: i32,
    c_w_id: i32,
    c_d_id: i32,
    customer: CustomerChoice,
    amount: Decimal,
    paid: NaiveDateTime,
    h_id: i64,
}

impl Payment {
    /// Draws the inputs (clause 2.5.1). `h_id` numbers the history row.
    pub fn draw(inputs: &mut Inputs<'_>, h_id: i64) -> Payment {
        let (w_id, d_id) = (inputs.home.w_id, inputs.district());
        let (c_w_id, c_d_id) = if inputs.rng.chance(0.15) { (inputs.remote_warehouse(), inputs.district()) } else { (w_id, d_id) };
        let customer = inputs.customer();
        Payment { w_id, d_id, c_w_id, c_d_id, customer, amount: decimal(inputs.rng, 100, 500_000, 2), paid: inputs.now, h_id }
    }

    /// The line that a payment adds in front of the data of a customer with bad credit.
    fn data(&self, c_id: i32, before: &str) -> String {
        let Payment { w_id, d_id, c_w_id, c_d_id, amount, .. } = self;
        format!("{c_id} {c_d_id} {c_w_id} {d_id} {w_id} {amount}|{before}").chars().take(DATA_LETTERS_MAX).collect()
    }
}

/// Attempts the transaction, and returns the customer's new balance.
pub async fn attempt(session: &mut Session, payment: &Payment) -> Result<Decimal, Failure> {
    session.begin(Access::ReadWrite).await?;
    let Payment { w_id, d_id, c_w_id, c_d_id, amount, .. } = *payment;
    let c_id = find(session, c_w_id, c_d_id, &payment.customer).await?;
    let key = [c_w_id.into(), c_d_id.into(), c_id.into()];
    let to_warehouse = [w_id.into(), amount.into()];
    let to_district = [w_id.into(), d_id.into(), amount.into()];
    let from_customer = [&key[..], &[amount.into()]].concat();
    let (warehouse, (district, customer)) = both(
        session.query_one(WAREHOUSE, &to_warehouse),
        both(session.query_one(DISTRICT, &to_district), session.query_one(CUSTOMER, &from_customer)),
    )
    .await?;
    let names = format!("{}    {}", get::<&str>(&warehouse, 0)?, get::<&str>(&district, 0)?);
    let payer = [c_w_id, c_d_id, c_id, d_id].map(Value::Int);
    let history = [&[w_id.into(), payment.h_id.into()][..], &payer[..], &[payment.paid.into(), amount.into(), names.into()][..]].concat();
    let bad_credit = get::<&str>(&customer, 0)? == "BC";
    let data = payment.data(c_id, get(&customer, 1)?);
    let note = async {
        match bad_credit {
            true => session.execute(CUSTOMER_DATA, &[&key[..], &[data.into()]].concat()).await,
            false => Ok(0),
        }
    };
    both(session.execute(HISTORY, &history), note).await?;
    session.commit().await?;
    get(&customer, 2)
}

#[cfg(test)]
mod tests {
    use rhumb_core::Rng;

    use super::super::home::Home;
    use super::super::random::NuRand;
    use super::super::scale::Scale;
    use super::*;

    fn payments(count: i64) -> Vec<Payment> {
        let mut rng = Rng::seeded(7);
        let scale = Scale::conforming(4);
        let nurand = NuRand::for_run(scale, &mut rng);
        let home = Home { w_id: 3, d_id: 1 };
        (0..count)
            .map(|h_id| Payment::draw(&mut Inputs { home, scale, nurand, rng: &mut rng, now: NaiveDateTime::default() }, h_id))
            .collect()
    }

    #[test]
    fn fifteen_in_a_hundred_pay_away_from_home_and_sixty_give_their_name() {
        let payments = payments(20_000);
        let share = |predicate: fn(&Payment) -> bool| payments.iter().filter(|payment| predicate(payment)).count() as f64 / 20_000.0;
        let remote = share(|payment| payment.c_w_id != 3);
        let named = share(|payment| matches!(payment.customer, CustomerChoice::ByLastName(_)));
        assert!((remote - 0.15).abs() < 0.01 && (named - 0.60).abs() < 0.01, "{remote} remote, {named} by name");
        assert!(payments.iter().all(|payment| payment.c_w_id != 3 || payment.c_d_id == payment.d_id));
        assert!(payments.iter().all(|payment| (Decimal::ONE..=Decimal::from(5_000)).contains(&payment.amount)));
    }

    #[test]
    fn the_data_of_bad_credit_grows_in_front_and_is_cut_off() {
        let payment = Payment { w_id: 1, d_id: 2, c_w_id: 3, c_d_id: 4, amount: Decimal::new(1_050, 2), ..payments(1).remove(0) };
        assert_eq!(payment.data(5, "before"), "5 4 3 2 1 10.50|before");
        assert_eq!(payment.data(5, &"x".repeat(600)).len(), DATA_LETTERS_MAX);
    }
}
