//! Promise: a store can do what it says, and is put to the tests of all that.

use tests::{Store, on_every_store};

on_every_store! {
    its_row_names_what_it_can_do,
}

async fn its_row_names_what_it_can_do(store: Store) {
    let locks = store.manager().await;
    // Its Debug names every field, also one that joins later.
    let says = format!("{:?}", locks.capabilities());
    let fields = says.split(['{', ',', '}']).map(str::trim);
    let can: Vec<_> = fields.filter_map(|it| it.strip_suffix(": true")).collect();
    assert_eq!(can, store.can());
}
