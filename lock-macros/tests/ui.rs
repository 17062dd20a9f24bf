//! Promise: a mistake is reported at compile time, where it was made, in a sentence that says what to write.
//!
//! Every file in `ui` is a mistake; what the compiler prints about it stands beside it.
//! `TRYBUILD=overwrite` writes that anew. Two of them read otherwise where the component `rust-src` is installed:
//! the compiler quotes the standard library there.

#[allow(unreachable_pub, reason = "it is public where it belongs")]
#[path = "../../tests/src/compiler.rs"]
mod compiler;

#[test]
fn mistakes() {
    if compiler::is_pinned("messages") {
        let cases = trybuild::TestCases::new();
        cases.compile_fail("ui/*.rs");
    }
}
