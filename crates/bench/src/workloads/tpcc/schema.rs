//! The nine tables of clause 1.3.
//!
//! Two liberties that clause 1.4 leaves: fixed text is VARCHAR, and HISTORY, which has no key of its own, gets a number to be its key, since a distributed
//! table needs one. There are no foreign keys: the transactions keep them, and the consistency conditions find out if they do not.

use crate::tables::TableDefinition;

/// Indices into [`TABLES`].
pub mod table {
    pub const WAREHOUSE: usize = 0;
    pub const DISTRICT: usize = 1;
    pub const CUSTOMER: usize = 2;
    pub const HISTORY: usize = 3;
    pub const NEW_ORDER: usize = 4;
    pub const ORDERS: usize = 5;
    pub const ORDER_LINE: usize = 6;
    pub const ITEM: usize = 7;
    pub const STOCK: usize = 8;
}

/// The tables, in the order of [`table`].
pub const TABLES: [TableDefinition; 9] = [
    TableDefinition {
        name: "warehouse",
        columns: &["w_id", "w_name", "w_street_1", "w_street_2", "w_city", "w_state", "w_zip", "w_tax", "w_ytd"],
        create: &["CREATE TABLE warehouse (w_id INT PRIMARY KEY, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20), \
             w_city VARCHAR(20), w_state VARCHAR(2), w_zip VARCHAR(9), w_tax NUMERIC(4,4), w_ytd NUMERIC(12,2))"],
    },
    TableDefinition {
        name: "district",
        columns: &["d_w_id", "d_id", "d_name", "d_street_1", "d_street_2", "d_city", "d_state", "d_zip", "d_tax", "d_ytd", "d_next_o_id"],
        create: &["CREATE TABLE district (d_w_id INT, d_id INT, d_name VARCHAR(10), d_street_1 VARCHAR(20), d_street_2 VARCHAR(20), \
             d_city VARCHAR(20), d_state VARCHAR(2), d_zip VARCHAR(9), d_tax NUMERIC(4,4), d_ytd NUMERIC(12,2), d_next_o_id INT, \
             PRIMARY KEY (d_w_id, d_id))"],
    },
    TableDefinition {
        name: "customer",
        columns: &[
            "c_w_id",
            "c_d_id",
            "c_id",
            "c_first",
            "c_middle",
            "c_last",
            "c_street_1",
            "c_street_2",
            "c_city",
            "c_state",
            "c_zip",
            "c_phone",
            "c_since",
            "c_credit",
            "c_credit_lim",
            "c_discount",
            "c_balance",
            "c_ytd_payment",
            "c_payment_cnt",
            "c_delivery_cnt",
            "c_data",
        ],
        create: &[
            "CREATE TABLE customer (c_w_id INT, c_d_id INT, c_id INT, c_first VARCHAR(16), c_middle VARCHAR(2), c_last VARCHAR(16), \
             c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), c_city VARCHAR(20), c_state VARCHAR(2), c_zip VARCHAR(9), c_phone VARCHAR(16), \
             c_since TIMESTAMP, c_credit VARCHAR(2), c_credit_lim NUMERIC(12,2), c_discount NUMERIC(4,4), c_balance NUMERIC(12,2), \
             c_ytd_payment NUMERIC(12,2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500), PRIMARY KEY (c_w_id, c_d_id, c_id))",
            "CREATE INDEX customer_by_last_name ON customer (c_w_id, c_d_id, c_last)",
        ],
    },
    TableDefinition {
        name: "history",
        columns: &["h_w_id", "h_id", "h_c_w_id", "h_c_d_id", "h_c_id", "h_d_id", "h_date", "h_amount", "h_data"],
        create: &["CREATE TABLE history (h_w_id INT, h_id BIGINT, h_c_w_id INT, h_c_d_id INT, h_c_id INT, h_d_id INT, h_date TIMESTAMP, \
             h_amount NUMERIC(6,2), h_data VARCHAR(24), PRIMARY KEY (h_w_id, h_id))"],
    },
    TableDefinition {
        name: "new_order",
        columns: &["no_w_id", "no_d_id", "no_o_id"],
        create: &["CREATE TABLE new_order (no_w_id INT, no_d_id INT, no_o_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id))"],
    },
    TableDefinition {
        name: "orders",
        columns: &["o_w_id", "o_d_id", "o_id", "o_c_id", "o_entry_d", "o_carrier_id", "o_ol_cnt", "o_all_local"],
        create: &[
            "CREATE TABLE orders (o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_entry_d TIMESTAMP, o_carrier_id INT, o_ol_cnt INT, \
             o_all_local INT, PRIMARY KEY (o_w_id, o_d_id, o_id))",
            "CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
        ],
    },
    TableDefinition {
        name: "order_line",
        columns: &[
            "ol_w_id",
            "ol_d_id",
            "ol_o_id",
            "ol_number",
            "ol_i_id",
            "ol_supply_w_id",
            "ol_delivery_d",
            "ol_quantity",
            "ol_amount",
            "ol_dist_info",
        ],
        create: &["CREATE TABLE order_line (ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT, ol_supply_w_id INT, \
             ol_delivery_d TIMESTAMP, ol_quantity INT, ol_amount NUMERIC(6,2), ol_dist_info VARCHAR(24), \
             PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))"],
    },
    TableDefinition {
        name: "item",
        columns: &["i_id", "i_im_id", "i_name", "i_price", "i_data"],
        create: &["CREATE TABLE item (i_id INT PRIMARY KEY, i_im_id INT, i_name VARCHAR(24), i_price NUMERIC(5,2), i_data VARCHAR(50))"],
    },
    TableDefinition {
        name: "stock",
        columns: &[
            "s_w_id",
            "s_i_id",
            "s_quantity",
            "s_dist_01",
            "s_dist_02",
            "s_dist_03",
            "s_dist_04",
            "s_dist_05",
            "s_dist_06",
            "s_dist_07",
            "s_dist_08",
            "s_dist_09",
            "s_dist_10",
            "s_ytd",
            "s_order_cnt",
            "s_remote_cnt",
            "s_data",
        ],
        create: &["CREATE TABLE stock (s_w_id INT, s_i_id INT, s_quantity INT, s_dist_01 VARCHAR(24), s_dist_02 VARCHAR(24), \
             s_dist_03 VARCHAR(24), s_dist_04 VARCHAR(24), s_dist_05 VARCHAR(24), s_dist_06 VARCHAR(24), s_dist_07 VARCHAR(24), \
             s_dist_08 VARCHAR(24), s_dist_09 VARCHAR(24), s_dist_10 VARCHAR(24), s_ytd INT, s_order_cnt INT, s_remote_cnt INT, \
             s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id))"],
    },
];
