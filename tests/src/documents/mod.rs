//! The documents of the repository: their text, their links, their code, and the site that is built from them.

pub mod blocks;
pub mod index;
pub mod links;
pub mod repository;
pub mod shown;
pub mod site;
pub mod words;
