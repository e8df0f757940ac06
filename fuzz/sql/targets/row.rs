//! Rows as they are stored: never panics; a key encodes back to the same bytes, and a value to the same columns, unchanged by no change.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_core::{Value, fields};
use rhumb_sql::fuzzing::{TYPES, encode_row, row_key, table};
use rhumb_sql::storage::{KEY_BYTES_MAX, decode_row};

fuzz_target!(|data: &[u8]| {
    let Some(([key_type, value_type, key_bytes], bytes)) = data.split_first_chunk() else { return };
    let Some((columns, value)) = bytes.split_at_checked(usize::from(*key_bytes)) else { return };
    let ty = |number: &u8| TYPES[usize::from(*number) % TYPES.len()];
    let table = table(ty(key_type), ty(value_type));
    let key = row_key(&table, columns);
    assert!(key.0.len() <= KEY_BYTES_MAX);
    let Ok(row) = decode_row(&table, &key, &Value::new(value.to_vec())) else { return };
    let (key_again, value_again) = encode_row(&table, &row).expect("what was decoded can be encoded");
    assert_eq!(key_again, key);
    assert_eq!(decode_row(&table, &key, &value_again).expect("what was encoded can be decoded"), row);
    let same = fields::changed(value, &[]).expect("a row is made of fields");
    assert_eq!(decode_row(&table, &key, &Value::new(same)).expect("nothing has changed"), row);
});
