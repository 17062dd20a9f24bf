//! Promise: the locks for tests behave as those in production, on tokio's clock, and fail when a test says so.

mod faults;
mod history;
mod page;
mod time;

#[test]
fn the_page_on_testing_shows_tests_that_run() {
    let page = include_str!("../../../docs/testing.md");
    let blocks = page.split("```rust\n").skip(1);
    let blocks: Vec<_> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    let tests = include_str!("page.rs");
    assert_eq!(blocks.concat().matches("#[tokio::test").count(), 4);
    for block in blocks {
        assert!(tests.contains(block), "not in page.rs:\n{block}");
    }
}
