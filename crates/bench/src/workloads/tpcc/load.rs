//! The initial database of clause 4.3.3, row by row from a seed.

use chrono::{DateTime, NaiveDateTime};
use rhumb_core::Rng;
use rust_decimal::Decimal;

use super::NAME;
use super::random::{NuRand, data, decimal, digits, last_name, letters, zip};
use super::scale::{DISTRICTS, Scale};
use super::schema::{TABLES, table};
use crate::client::postgres::Value;
use crate::error::BenchError;
use crate::tables::{Dataset, LoadRow};

/// The first customers of a district have the last names 0 to 999 in order, the others random ones.
const NAMED_IN_ORDER: i32 = 1_000;

/// The moment that the initial data claims to be from: fixed, so that the same seed loads the same bytes.
const LOADED_AT_UNIX_S: i64 = 1_750_000_000;

/// What to load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How much.
    pub scale: Scale,
    /// Where the contents come from.
    pub seed: u64,
}

impl Load {
    /// The rows to load.
    pub fn dataset(&self) -> Result<Dataset, BenchError> {
        self.scale.validate()?;
        let (scale, mut rng) = (self.scale, Rng::seeded(self.seed));
        let mut items_rng = rng.fork();
        let items = (1..=scale.items as i32).map(move |id| item(id, &mut items_rng));
        let warehouses = (1..=scale.warehouses as i32).flat_map(move |id| warehouse_rows(scale, id, rng.fork()));
        Ok(Dataset {
            workload: NAME,
            tables: &TABLES,
            rows: Box::new(items.chain(warehouses)),
            rows_expected: scale.rows_expected(),
            parameters: scale.to_parameters(),
        })
    }
}

fn loaded_at() -> NaiveDateTime {
    DateTime::from_timestamp(LOADED_AT_UNIX_S, 0).expect("a moment in range").naive_utc()
}

type Rows = Box<dyn Iterator<Item = LoadRow> + Send>;

fn warehouse_rows(scale: Scale, w_id: i32, mut rng: Rng) -> Rows {
    let mut stock_rng = rng.fork();
    let own = std::iter::once(warehouse(scale, w_id, &mut rng));
    let stocks = (1..=scale.items as i32).map(move |i_id| stock(w_id, i_id, &mut stock_rng));
    let districts = (1..=DISTRICTS).flat_map(move |d_id| district_rows(scale, w_id, d_id, rng.fork()));
    Box::new(own.chain(stocks).chain(districts))
}

/// A district with its customers and their orders.
fn district_rows(scale: Scale, w_id: i32, d_id: i32, mut rng: Rng) -> Rows {
    let customers = scale.customers_per_district as i32;
    let mut customer_rng = rng.fork();
    let mut history_rng = rng.fork();
    let mut line_rng = rng.fork();
    let own = std::iter::once(district(scale, w_id, d_id, &mut rng));
    let people = (1..=customers).map(move |c_id| customer(scale, [w_id, d_id, c_id], &mut customer_rng));
    let histories = (1..=customers).map(move |c_id| history(scale, [w_id, d_id, c_id], &mut history_rng));
    let heads = order_heads(scale, &mut rng);
    let lines_of = heads.clone();
    let orders = heads.into_iter().map(move |head| order(w_id, d_id, head));
    let new_orders =
        (scale.delivered_initially() + 1..=customers).map(move |o_id| row(table::NEW_ORDER, [w_id.into(), d_id.into(), o_id.into()]));
    let lines = lines_of.into_iter().flat_map(move |head| order_lines(scale, w_id, d_id, head, &mut line_rng));
    Box::new(own.chain(people).chain(histories).chain(orders).chain(new_orders).chain(lines))
}

fn row<const N: usize>(table: usize, values: [Value; N]) -> LoadRow {
    LoadRow { table, values: values.into() }
}

fn item(id: i32, rng: &mut Rng) -> LoadRow {
    let image = rng.between(1, 10_000) as i32;
    row(table::ITEM, [id.into(), image.into(), letters(rng, 14, 24).into(), decimal(rng, 100, 10_000, 2).into(), data(rng).into()])
}

/// Two streets, a city, a state and a postal code.
fn address(rng: &mut Rng) -> [Value; 5] {
    [letters(rng, 10, 20).into(), letters(rng, 10, 20).into(), letters(rng, 10, 20).into(), letters(rng, 2, 2).into(), zip(rng).into()]
}

/// What every customer has paid at first; the years to date of districts and warehouses are sums of it.
fn first_payment() -> Decimal {
    Decimal::new(1_000, 2)
}

fn warehouse(scale: Scale, w_id: i32, rng: &mut Rng) -> LoadRow {
    let mut values = vec![w_id.into(), letters(rng, 6, 10).into()];
    values.extend(address(rng));
    let year_to_date = first_payment() * Decimal::from(scale.customers_per_district) * Decimal::from(DISTRICTS);
    values.extend([decimal(rng, 0, 2_000, 4).into(), year_to_date.into()]);
    LoadRow { table: table::WAREHOUSE, values }
}

fn district(scale: Scale, w_id: i32, d_id: i32, rng: &mut Rng) -> LoadRow {
    let mut values = vec![w_id.into(), d_id.into(), letters(rng, 6, 10).into()];
    values.extend(address(rng));
    let year_to_date = first_payment() * Decimal::from(scale.customers_per_district);
    values.extend([decimal(rng, 0, 2_000, 4).into(), year_to_date.into(), (scale.customers_per_district as i32 + 1).into()]);
    LoadRow { table: table::DISTRICT, values }
}

fn stock(w_id: i32, i_id: i32, rng: &mut Rng) -> LoadRow {
    let mut values = vec![w_id.into(), i_id.into(), (rng.between(10, 100) as i32).into()];
    values.extend((0..DISTRICTS).map(|_| Value::from(letters(rng, 24, 24))));
    values.extend([0.into(), 0.into(), 0.into(), data(rng).into()]);
    LoadRow { table: table::STOCK, values }
}

fn customer(scale: Scale, [w_id, d_id, c_id]: [i32; 3], rng: &mut Rng) -> LoadRow {
    let last = match c_id {
        c_id if c_id <= NAMED_IN_ORDER => last_name(c_id as u64 - 1),
        _ => NuRand::for_load(scale).last_name(rng),
    };
    let credit = if rng.chance(0.1) { "BC" } else { "GC" };
    let mut values = vec![w_id.into(), d_id.into(), c_id.into(), letters(rng, 8, 16).into(), "OE".into(), last.into()];
    values.extend(address(rng));
    values.extend([
        digits(rng, 16).into(),
        loaded_at().into(),
        credit.into(),
        Decimal::new(5_000_000, 2).into(),
        decimal(rng, 0, 5_000, 4).into(),
    ]);
    values.extend([(-first_payment()).into(), first_payment().into(), 1.into(), 0.into(), letters(rng, 300, 500).into()]);
    LoadRow { table: table::CUSTOMER, values }
}

fn history(scale: Scale, [w_id, d_id, c_id]: [i32; 3], rng: &mut Rng) -> LoadRow {
    let h_id = i64::from(d_id - 1) * i64::from(scale.customers_per_district) + i64::from(c_id);
    let (paid, text) = (first_payment(), letters(rng, 12, 24));
    let values =
        [w_id.into(), h_id.into(), w_id.into(), d_id.into(), c_id.into(), d_id.into(), loaded_at().into(), paid.into(), text.into()];
    row(table::HISTORY, values)
}

/// What an order and its lines must agree on.
#[derive(Clone, Copy)]
struct OrderHead {
    o_id: i32,
    c_id: i32,
    lines: i32,
    carrier: Option<i32>,
}

/// One order per customer, customers in random order.
fn order_heads(scale: Scale, rng: &mut Rng) -> Vec<OrderHead> {
    let mut customers: Vec<i32> = (1..=scale.customers_per_district as i32).collect();
    rng.shuffle(&mut customers);
    let head = |(o_id, c_id)| OrderHead {
        o_id,
        c_id,
        lines: rng.between(5, 15) as i32,
        carrier: (o_id <= scale.delivered_initially()).then(|| rng.between(1, 10) as i32),
    };
    (1..).zip(customers).map(head).collect()
}

fn order(w_id: i32, d_id: i32, head: OrderHead) -> LoadRow {
    let carrier = head.carrier.map_or(Value::Null, Value::Int);
    let values = [w_id.into(), d_id.into(), head.o_id.into(), head.c_id.into(), loaded_at().into(), carrier, head.lines.into(), 1.into()];
    row(table::ORDERS, values)
}

/// The lines of an order: those delivered cost nothing, so that every balance adds up from the start.
fn order_lines(scale: Scale, w_id: i32, d_id: i32, head: OrderHead, rng: &mut Rng) -> Vec<LoadRow> {
    let line = |number: i32| {
        let item = rng.between(1, scale.items.into()) as i32;
        let (delivered, amount) = match head.carrier {
            Some(_) => (loaded_at().into(), Decimal::new(0, 2)),
            None => (Value::Null, decimal(rng, 1, 999_999, 2)),
        };
        let key = [w_id.into(), d_id.into(), head.o_id.into(), number.into()];
        let rest = [item.into(), w_id.into(), delivered, 5.into(), amount.into(), letters(rng, 24, 24).into()];
        LoadRow { table: table::ORDER_LINE, values: key.into_iter().chain(rest).collect() }
    };
    (1..=head.lines).map(line).collect()
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
