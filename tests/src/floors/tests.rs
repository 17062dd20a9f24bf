//! Small crates, and what is wrong with them.

use super::*;

const ORDER: &str = "base < types < telemetry < backend | held < driver < lib.rs";

/// A crate without mistakes; files of the same path replace its own.
fn tree(changed: &[(&str, &str)]) -> Survey {
    let good = [
        ("lib.rs", "mod base;\nmod driver;\npub use driver::Op;\n"),
        (
            "base/mod.rs",
            "pub(crate) mod clock;\nmod numbers;\npub(crate) use numbers::one;\n",
        ),
        ("base/clock.rs", "pub(crate) struct Clock;\n"),
        ("base/numbers.rs", "pub(crate) fn one() {}\n"),
        ("types/mod.rs", "pub(crate) mod key;\n"),
        (
            "types/key.rs",
            "use crate::base::{clock::Clock, one as other};\n",
        ),
        ("backend/mod.rs", "use crate::types::key;\n"),
        (
            "held/mod.rs",
            "pub(crate) struct Guard(crate::base::clock::Clock);\n",
        ),
        (
            "driver/mod.rs",
            "pub(crate) struct Op;\n#[cfg(test)]\nmod simulation;\n",
        ),
        (
            "driver/simulation.rs",
            "use super::Op;\nuse crate::{backend, held::Guard};\n",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in good.iter().chain(changed) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    survey(folder.path(), &ORDER.parse().unwrap()).unwrap()
}

#[test]
fn finds_nothing_wrong_with_a_crate_in_order() {
    let survey = tree(&[]);
    assert_eq!(survey.mistakes, [""; 0]);
    let listed: Vec<String> = survey
        .between_folders
        .iter()
        .map(|((from, to), count)| format!("{from} -> {to}: {count}"))
        .collect();
    assert_eq!(
        listed,
        [
            "backend -> types: 1",
            "driver -> backend: 1",
            "driver -> held: 1",
            "held -> base: 1",
            "lib.rs -> driver: 1",
            "types -> base: 2",
        ]
    );
}

#[test]
fn refuses_an_import_from_a_higher_floor() {
    for (text, line, path) in [
        ("\nuse crate::driver::Op;", 2, "crate::driver::Op"),
        (
            "use super::super::driver::Op;",
            1,
            "super::super::driver::Op",
        ),
        (
            "use crate::{\n  base,\n  driver::{Op, self},\n};",
            3,
            "crate::driver::Op",
        ),
        ("pub use crate::driver::*;", 1, "crate::driver"),
        ("fn f() {\n  g(crate::driver::Op) }", 2, "crate::driver::Op"),
        (
            "/* a\n*/ fn f(_: &'_ str) -> crate::driver::Op {}",
            2,
            "crate::driver::Op",
        ),
        (
            "mod a {\n  use super::super::super::driver::Op;\n}",
            2,
            "super::super::super::driver::Op",
        ),
        (
            "#[cfg(test)]\nmod tests {\n  use crate::driver::Op;\n}",
            3,
            "crate::driver::Op",
        ),
        (
            "const A: &str = r#\"\"\"#; use crate::driver::Op;",
            1,
            "crate::driver::Op",
        ),
    ] {
        let mistakes = tree(&[("types/key.rs", text)]).mistakes;
        let expected =
            format!("types/key.rs:{line}: types imports `{path}`, but driver is above it");
        assert_eq!(mistakes.first(), Some(&expected), "{text}");
    }
}

#[test]
fn refuses_an_import_from_a_folder_on_the_same_floor() {
    let mistakes = tree(&[("backend/mod.rs", "use crate::held::Guard;")]).mistakes;
    assert_eq!(
        mistakes,
        ["backend/mod.rs:1: backend imports `crate::held::Guard`, but held is beside it"]
    );
}

#[test]
fn refuses_a_circle_and_shows_each_of_its_imports() {
    let mistakes = tree(&[
        ("base/clock.rs", "use super::numbers::one;\n"),
        ("base/numbers.rs", "\nfn f() { super::clock::now() }\n"),
    ])
    .mistakes;
    assert_eq!(
        mistakes,
        [
            "circle:\n  base/clock.rs:1 imports base/numbers.rs\n  base/numbers.rs:2 imports base/clock.rs"
        ]
    );
    let mistakes = tree(&[(
        "base/numbers.rs",
        "use super::clock::Clock;\nuse super::other;\n",
    )]);
    assert_eq!(
        mistakes.mistakes,
        [
            "circle:\n  base/mod.rs:3 imports base/numbers.rs\n  base/numbers.rs:2 imports base/mod.rs"
        ]
    );
}

#[test]
fn lets_tests_be_in_a_circle() {
    for numbers in [
        "#[cfg(test)]\nmod tests {\n  use crate::base::clock::Clock;\n}\n",
        "#[cfg(test)]\nfn f<A, B>(a: A) -> B { if 1 < 2 { crate::base::clock::now() } }\n",
        "#[cfg(test)]\nuse super::clock::Clock;\n",
    ] {
        let changed = [
            ("base/clock.rs", "use super::numbers::one;\n"),
            ("base/numbers.rs", numbers),
        ];
        assert_eq!(tree(&changed).mistakes, [""; 0], "{numbers}");
    }
    let after = "#[cfg(test)]\nfn f() {}\nuse super::clock::Clock;\n";
    let changed = [
        ("base/clock.rs", "use super::numbers::one;\n"),
        ("base/numbers.rs", after),
    ];
    assert_eq!(tree(&changed).mistakes.len(), 1);
}

#[test]
fn does_not_take_other_text_for_imports() {
    for text in [
        "// use crate::driver::Op;\n/* /* crate::driver */ crate::driver */",
        "/// [`Op`](crate::driver::Op)\nstruct A;",
        "const A: (&str, char) = (\"\\\"crate::driver::Op\", '\"');",
        "const A: &str = r#\"\"crate::driver::Op\"#;",
        "use ::driver::Op;\nuse driver::Op;\nfn f() -> impl Sized + use<> {}",
        "pub(in crate::driver) fn f() {}\npub(crate) fn g() {}",
    ] {
        assert_eq!(tree(&[("types/key.rs", text)]).mistakes, [""; 0], "{text}");
    }
}

#[test]
fn refuses_a_file_on_no_floor() {
    let mistakes = tree(&[("attic/mod.rs", "")]).mistakes;
    assert_eq!(mistakes, ["attic/mod.rs: attic is on no floor"]);
}

/// A folder of a crate with four floors of its own, of which some files are changed.
fn folder(changed: &[(&str, &str)]) -> Vec<String> {
    let good = [
        ("lib.rs", "mod base;\nmod backend;\n"),
        ("base.rs", "pub(crate) struct Clock;\n"),
        ("backend/mod.rs", "mod store;\nuse store::Store;\n"),
        (
            "backend/store/mod.rs",
            "mod link;\nmod queue;\nmod target;\nuse link::Link;\nuse super::Backend;\n",
        ),
        ("backend/store/queue/mod.rs", "use crate::base::Clock;\n"),
        (
            "backend/store/link/mod.rs",
            "use crate::backend::store::queue::Queue;\nuse crate::{base, backend::Backend};\n",
        ),
        ("backend/store/target.rs", "use super::Store;\n"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in good.iter().chain(changed) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let order = "queue < link < mod.rs < target.rs".parse().unwrap();
    let survey = survey(&folder.path().join("backend/store"), &order).unwrap();
    survey.mistakes
}

#[test]
fn looks_at_the_imports_within_a_folder_alone() {
    assert_eq!(folder(&[]), [""; 0]);
    // What has the name of a floor elsewhere is none of its own.
    let elsewhere = "use crate::link::Link;\nuse crate::backend::target::Target;\nuse super::super::super::link;\n";
    assert_eq!(
        folder(&[("backend/store/queue/mod.rs", elsewhere)]),
        [""; 0]
    );
}

#[test]
fn refuses_an_import_from_a_higher_floor_of_the_folder() {
    for (text, path, to) in [
        (
            "use crate::backend::store::link::Link;",
            "crate::backend::store::link::Link",
            "link",
        ),
        (
            "use super::super::link::Link;",
            "super::super::link::Link",
            "link",
        ),
        (
            "fn f(_: super::super::Store) {}",
            "super::super::Store",
            "mod.rs",
        ),
        (
            "use crate::backend::{Backend, store::target::Target};",
            "crate::backend::store::target::Target",
            "target.rs",
        ),
    ] {
        let mistakes = folder(&[("backend/store/queue/claim.rs", text)]);
        let expected = format!("queue/claim.rs:1: queue imports `{path}`, but {to} is above it");
        assert_eq!(mistakes.first(), Some(&expected), "{text}");
    }
}
