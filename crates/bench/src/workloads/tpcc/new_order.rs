//! The New-Order transaction (clause 2.4): a customer orders 5 to 15 items; one order in a hundred names an item that does not exist and rolls back.
//!
//! ```text
//! items · stocks per supplying warehouse · warehouse · customer · district     one burst of reads (the district takes its next number)
//! stocks per supplying warehouse · order · new order · order lines             one burst of writes
//! COMMIT
//! ```
//!
//! Stocks are read and written per supplying warehouse: one statement each for nine orders of ten, whose items all come from home.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDateTime;
use rust_decimal::Decimal;
use tokio_postgres::Row;

use super::inputs::Inputs;
use crate::client::postgres::{Access, Failure, Session, Value, all, both, get, placeholders, values_list};

const WAREHOUSE: &str = "SELECT w_tax FROM warehouse WHERE w_id = $1";
const CUSTOMER: &str = "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
const DISTRICT: &str = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id, d_tax";
const ORDER: &str =
    "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES ($1, $2, $3, $4, $5, $6, $7)";
const NEW_ORDER: &str = "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)";
const LINES: &str =
    "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES";
const LINE_COLUMNS: usize = 9;

/// One item of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    i_id: i32,
    supply_w_id: i32,
    quantity: i32,
}

/// An order as the user enters it.
#[derive(Clone, Debug)]
pub struct NewOrder {
    w_id: i32,
    d_id: i32,
    c_id: i32,
    entered: NaiveDateTime,
    lines: Vec<Line>,
}

/// What the terminal would show of an order that committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// The order's number in its district.
    pub o_id: i32,
    /// What it costs, discount and taxes applied.
    pub total: Decimal,
}

impl NewOrder {
    /// Draws the inputs (clause 2.4.1).
    pub fn draw(inputs: &mut Inputs<'_>) -> NewOrder {
        let d_id = inputs.district();
        let c_id = inputs.nurand.customer(inputs.rng);
        let count = inputs.rng.between(5, 15);
        let mut lines: Vec<Line> = (0..count).map(|_| draw_line(inputs)).collect();
        if inputs.rng.chance(0.01) {
            let unused = inputs.scale.items as i32 + 1;
            lines.last_mut().expect("an order has five lines at least").i_id = unused;
        }
        NewOrder { w_id: inputs.home.w_id, d_id, c_id, entered: inputs.now, lines }
    }

    fn item_ids(&self) -> Vec<i32> {
        let ids: BTreeSet<i32> = self.lines.iter().map(|line| line.i_id).collect();
        ids.into_iter().collect()
    }

    /// The items wanted of each supplying warehouse, in order.
    fn supplies(&self) -> BTreeMap<i32, BTreeSet<i32>> {
        let mut supplies: BTreeMap<i32, BTreeSet<i32>> = BTreeMap::new();
        for line in &self.lines {
            supplies.entry(line.supply_w_id).or_default().insert(line.i_id);
        }
        supplies
    }
}

fn draw_line(inputs: &mut Inputs<'_>) -> Line {
    let i_id = inputs.nurand.item(inputs.rng);
    let supply_w_id = if inputs.rng.chance(0.01) { inputs.remote_warehouse() } else { inputs.home.w_id };
    Line { i_id, supply_w_id, quantity: inputs.rng.between(1, 10) as i32 }
}

/// A stock as it was read, and as the order's lines change it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stock {
    quantity: i32,
    ytd: i32,
    order_count: i32,
    remote_count: i32,
    district_info: String,
}

impl Stock {
    /// Takes `quantity` out, and refills with 91 when fewer than ten would be left (clause 2.4.2.2).
    fn take(&mut self, quantity: i32, remote: bool) {
        let refill = if self.quantity - quantity >= 10 { 0 } else { 91 };
        self.quantity += refill - quantity;
        self.ytd += quantity;
        self.order_count += 1;
        self.remote_count += i32::from(remote);
    }
}

type Stocks = BTreeMap<(i32, i32), Stock>;
type Prices = BTreeMap<i32, Decimal>;

struct Rates {
    w_tax: Decimal,
    d_tax: Decimal,
    discount: Decimal,
}

/// Attempts the transaction; `None` if it rolled back for an item that does not exist.
pub async fn attempt(session: &mut Session, order: &NewOrder) -> Result<Option<Receipt>, Failure> {
    session.begin(Access::ReadWrite).await?;
    let place = [order.w_id.into(), order.d_id.into()];
    let customer = [order.w_id.into(), order.d_id.into(), order.c_id.into()];
    let ((prices, mut stocks), (warehouse, (customer, district))) = both(
        both(read_prices(session, order), read_stocks(session, order)),
        both(session.query_one(WAREHOUSE, &place[..1]), both(session.query_one(CUSTOMER, &customer), session.query_one(DISTRICT, &place))),
    )
    .await?;
    if order.lines.iter().any(|line| !prices.contains_key(&line.i_id)) {
        session.rollback().await?;
        return Ok(None);
    }
    let o_id = get::<i32>(&district, 0)? - 1;
    let rates = Rates { w_tax: get(&warehouse, 0)?, d_tax: get(&district, 1)?, discount: get(&customer, 0)? };
    for line in &order.lines {
        let stock = stocks.get_mut(&(line.supply_w_id, line.i_id)).ok_or_else(|| missing_stock(line))?;
        stock.take(line.quantity, line.supply_w_id != order.w_id);
    }
    write(session, order, o_id, &prices, &stocks).await?;
    session.commit().await?;
    Ok(Some(Receipt { o_id, total: total(&order.lines, &prices, &rates) }))
}

async fn read_prices(session: &Session, order: &NewOrder) -> Result<Prices, Failure> {
    let ids = order.item_ids();
    let sql = format!("SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN ({})", placeholders(1, ids.len()));
    let values: Vec<Value> = ids.into_iter().map(Value::Int).collect();
    session.query(&sql, &values).await?.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect()
}

async fn read_stocks(session: &Session, order: &NewOrder) -> Result<Stocks, Failure> {
    let supplies = order.supplies();
    let reads = supplies.iter().map(|(w_id, items)| async move {
        let sql = format!(
            "SELECT s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt, s_dist_{:02}, s_data FROM stock \
             WHERE s_w_id = $1 AND s_i_id IN ({}) FOR UPDATE",
            order.d_id,
            placeholders(2, items.len())
        );
        let values: Vec<Value> = std::iter::once(*w_id).chain(items.iter().copied()).map(Value::Int).collect();
        let rows = session.query(&sql, &values).await?;
        rows.iter().map(|row| Ok(((*w_id, get(row, 0)?), read_stock(row)?))).collect::<Result<Vec<_>, Failure>>()
    });
    Ok(all(reads).await?.into_iter().flatten().collect())
}

fn read_stock(row: &Row) -> Result<Stock, Failure> {
    Ok(Stock {
        quantity: get(row, 1)?,
        ytd: get(row, 2)?,
        order_count: get(row, 3)?,
        remote_count: get(row, 4)?,
        district_info: get(row, 5)?,
    })
}

async fn write(session: &Session, order: &NewOrder, o_id: i32, prices: &Prices, stocks: &Stocks) -> Result<(), Failure> {
    let all_local = order.lines.iter().all(|line| line.supply_w_id == order.w_id);
    let key = [order.w_id.into(), order.d_id.into(), o_id.into()];
    let rest = [order.c_id.into(), order.entered.into(), (order.lines.len() as i32).into(), i32::from(all_local).into()];
    let head: Vec<Value> = key.iter().cloned().chain(rest).collect();
    let supplies = order.supplies();
    let stock_writes = supplies.iter().map(|(w_id, items)| async move {
        let changed: Vec<(i32, &Stock)> = items.iter().map(|i_id| (*i_id, &stocks[&(*w_id, *i_id)])).collect();
        let (sql, values) = stock_update(*w_id, &changed);
        session.execute(&sql, &values).await
    });
    let lines = format!("{LINES} {}", values_list(order.lines.len(), LINE_COLUMNS));
    let line_values = line_values(order, o_id, prices, stocks);
    let order_writes = both(session.execute(ORDER, &head), both(session.execute(NEW_ORDER, &key), session.execute(&lines, &line_values)));
    both(all(stock_writes), order_writes).await.map(drop)
}

/// One UPDATE for many stocks of a warehouse: `SET s_quantity = CASE s_i_id WHEN $item THEN $quantity … END`, and so for each column.
fn stock_update(w_id: i32, stocks: &[(i32, &Stock)]) -> (String, Vec<Value>) {
    type Column = (&'static str, fn(&Stock) -> i32);
    let columns: [Column; 4] = [
        ("s_quantity", |stock| stock.quantity),
        ("s_ytd", |stock| stock.ytd),
        ("s_order_cnt", |stock| stock.order_count),
        ("s_remote_cnt", |stock| stock.remote_count),
    ];
    // $1 is the warehouse, then come the items, then every column's new values.
    let mut values: Vec<Value> = std::iter::once(w_id).chain(stocks.iter().map(|(i_id, _)| *i_id)).map(Value::Int).collect();
    let mut assignments = Vec::new();
    for (column, value_of) in columns {
        let arms: Vec<String> = (0..stocks.len()).map(|i| format!("WHEN ${} THEN ${}", i + 2, values.len() + i + 1)).collect();
        assignments.push(format!("{column} = CASE s_i_id {} END", arms.join(" ")));
        values.extend(stocks.iter().map(|(_, stock)| Value::Int(value_of(stock))));
    }
    let items = placeholders(2, stocks.len());
    (format!("UPDATE stock SET {} WHERE s_w_id = $1 AND s_i_id IN ({items})", assignments.join(", ")), values)
}

fn line_values(order: &NewOrder, o_id: i32, prices: &Prices, stocks: &Stocks) -> Vec<Value> {
    let mut values = Vec::new();
    for (number, line) in (1..).zip(&order.lines) {
        let info = stocks[&(line.supply_w_id, line.i_id)].district_info.as_str();
        values.extend([order.w_id, order.d_id, o_id, number, line.i_id, line.supply_w_id, line.quantity].map(Value::Int));
        values.extend([amount(line, prices).into(), info.into()]);
    }
    values
}

fn amount(line: &Line, prices: &Prices) -> Decimal {
    Decimal::from(line.quantity) * prices[&line.i_id]
}

fn total(lines: &[Line], prices: &Prices, rates: &Rates) -> Decimal {
    let sum: Decimal = lines.iter().map(|line| amount(line, prices)).sum();
    sum * (Decimal::ONE - rates.discount) * (Decimal::ONE + rates.w_tax + rates.d_tax)
}

fn missing_stock(line: &Line) -> Failure {
    Failure::Refused { code: None, reason: format!("warehouse {} has no stock of item {}", line.supply_w_id, line.i_id) }
}

#[cfg(test)]
#[path = "new_order_tests.rs"]
mod tests;
