//! The binary `punctual`.

fn main() {}
