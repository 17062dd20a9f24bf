//! The site: its links lead to files and elements.

use std::fs::{create_dir, write};

use tests::documents::site::{dead_links, stage};

#[test]
fn the_pages_of_the_site_keep_their_places() {
    let folder = tempfile::tempdir().expect("a folder");
    stage(folder.path()).expect("the pages can be written");
    let summary = std::fs::read_to_string(folder.path().join("SUMMARY.md")).expect("it is text");
    for page in [
        "README.md",
        "docs/README.md",
        "docs/guarantees.md",
        "ARCHITECTURE.md",
    ] {
        assert!(folder.path().join(page).is_file(), "{page}");
        assert!(summary.contains(&format!("]({page})\n")), "{page}");
    }
    let linked = "lock-runtime/src/backend/mod.rs";
    assert!(folder.path().join(linked).is_file(), "{linked}");
}

#[test]
fn a_dead_link_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = folder.path();
    create_dir(site.join("docs")).expect("a folder");
    let page = "<a href=\"#here\"></a><a href=\"../index.html#there\"></a><a href=\"https://none.example\"></a>\
        <h1 id=\"here\"></h1><a href=\"#gone\"></a><a href=\"gone.html\"></a><a href=\"../index.html#gone\"></a>";
    write(site.join("docs/page.html"), page).expect("is written");
    write(site.join("index.html"), "<h1 id=\"there\"></h1>").expect("is written");
    let dead = dead_links(site);
    let dead: Vec<_> = dead
        .iter()
        .filter_map(|link| link.split(": ").nth(1))
        .collect();
    assert_eq!(dead, ["#gone", "gone.html", "../index.html#gone"]);
}
