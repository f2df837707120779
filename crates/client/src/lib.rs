//! What a Punctual server says and hears over HTTP: the wire types, a client, and a loop for workers.

pub mod wire;
