//! SQL text to statements: never panics, and its memory is bounded by the text's.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = rhumb_sql::parser::parse(text);
});
