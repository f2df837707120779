//! The store in a folder, on a disk that loses power and on a real one.

mod conforms;
mod folders;
mod world;
