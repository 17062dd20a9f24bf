//! Promise: `docs/expansion.md` shows what the attribute makes of a function, and explains every line of it.
//!
//! `UPDATE_SNAPSHOTS=1` writes the code anew.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::compiler_is_pinned;

const FENCE: &str = "```";

/// What makes a program of the expansion, which the tests of the documents compile.
const IMPORT: &str = "use lock_runtime::LockError;\n\n";

#[test]
fn the_document_shows_what_is_compiled() {
    if !compiler_is_pinned("expansions") {
        return;
    }
    let (document, expanded) = (Document::read(), expand("buy"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        document.write(&expanded);
    }
    let shown = Document::read();
    let shown = shown.expansion();
    assert!(
        shown == expanded,
        "docs/expansion.md is out of date; UPDATE_SNAPSHOTS=1 accepts this:\n{expanded}"
    );
}

#[test]
fn the_document_shows_the_example() {
    let source = read("examples/expand_me.rs");
    let shown = Document::read();
    assert!(source.contains(shown.source()), "{}", shown.source());
    let without_body: Vec<_> = shown.source().lines().take(4).collect();
    assert!(read("README.md").contains(&without_body.join("\n")));
}

#[test]
fn the_document_explains_every_line() {
    let document = Document::read();
    let (code, explained) = (document.expansion(), document.explained());
    for fragment in &explained {
        assert!(
            code.contains(fragment),
            "`{fragment}` is not there any more"
        );
    }
    for line in code.lines() {
        let says_something = line.contains(char::is_alphanumeric);
        let is_explained = explained.iter().any(|fragment| line.contains(fragment));
        assert!(!says_something || is_explained, "not explained: {line}");
    }
}

/// `docs/expansion.md`: the parts between fences are the source, the expansion, and nothing more.
struct Document(String);

impl Document {
    fn read() -> Self {
        Document(read("docs/expansion.md"))
    }

    fn source(&self) -> &str {
        self.block(1)
    }

    fn expansion(&self) -> &str {
        let block = self.block(3).strip_prefix(IMPORT);
        block.expect("the expansion begins with its import")
    }

    fn block(&self, index: usize) -> &str {
        let block = self.0.split(FENCE).nth(index);
        let block = block.and_then(|block| block.strip_prefix("rust\n"));
        block.expect("the document has two blocks of Rust")
    }

    /// The code in the first column of the first table.
    fn explained(&self) -> Vec<&str> {
        let rows = self.0.lines().skip_while(|line| !line.starts_with("|---"));
        let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
        rows.filter_map(|row| row.split(" | ").next())
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect()
    }

    fn write(self, expanded: &str) {
        let mut parts: Vec<_> = self.0.split(FENCE).collect();
        let block = format!("rust\n{IMPORT}{expanded}");
        parts[3] = &block;
        std::fs::write(root().join("docs/expansion.md"), parts.join(FENCE)).expect("is written");
    }
}

/// What the attribute makes of this function of `expand_me`, printed as `cargo expand` does.
fn expand(function: &str) -> String {
    let dependencies = std::env::current_exe().expect("a test is a file");
    let dependencies = dependencies.parent().expect("it is in a folder");
    let search = format!("dependency={}", dependencies.display());
    let example = root().join("examples/expand_me.rs").display().to_string();
    // Those that were built with fewer features lie beside the one that has the attribute.
    let expanded = runtimes_in(dependencies).into_iter().find_map(|runtime| {
        let runtime = format!("lock_runtime={}", runtime.display());
        let options = ["--edition=2024", "-Zunpretty=expanded", "-L", &search];
        rustc(&[&options[..], &["--extern", &runtime, &example]].concat())
    });
    let expanded = expanded.expect("the example compiles with one of the runtimes; see above");
    let mut file = syn::parse_file(&expanded).expect("an expansion is Rust");
    file.shebang = None;
    file.attrs.clear();
    file.items
        .retain(|item| matches!(item, syn::Item::Fn(item) if item.sig.ident == function));
    prettyplease::unparse(&file)
}

/// The runtimes that were built, the newest first.
fn runtimes_in(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("the folder of this test");
    let built = files.flatten().map(|file| file.path()).filter(|path| {
        let name = path.file_stem().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("liblock_runtime-"))
            && path.extension().is_some_and(|kind| kind == "rlib")
    });
    let mut built: Vec<_> = built.collect();
    built.sort_by_key(|path| path.metadata().and_then(|file| file.modified()).ok());
    built.reverse();
    built
}

/// What the compiler prints; options that are not stable are allowed.
fn rustc(options: &[&str]) -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(options).env("RUSTC_BOOTSTRAP", "1");
    let output = command.output().expect("there is a compiler");
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(String::from_utf8(output.stdout).expect("what it prints is text"))
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).expect("the file is there")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
