//! Several keys in an array.

use super::*;

#[test]
fn reads_several_keys() {
    for (tokens, count) in [
        (r#"key = ["acct:{from}", "acct:{to}"]"#, 2),
        (r##"key = ["a", r#"b"#, "c",]"##, 3),
        (r#"key = ["a"]"#, 1),
    ] {
        let (args, mistakes) = parse(tokens);
        assert_eq!(mistakes, [""; 0], "{tokens}");
        assert!(
            matches!(args.keys, Some(Keys::Several(keys)) if keys.len() == count),
            "{tokens}"
        );
    }
}

#[test]
fn says_what_is_wrong_with_several_keys() {
    let not_literal = "each key is a string literal, with expressions in braces: write for example `\"acct:{from}\"`";
    let none = "`key` names no lock: write at least one between the brackets, as in `key = [\"acct:{from}\", \"acct:{to}\"]`";
    for (keys, messages) in [
        ("[]", &[none][..]),
        ("[from, format!(\"b\")]", &[not_literal, not_literal]),
        ("[\"a\", [\"b\"]]", &[not_literal]),
        ("[\"a\", #[cfg(test)] \"b\"]", &[not_literal]),
        ("[\"a\" \"b\"]", &["expected `,` before the next key"]),
        ("[\"a\"; 2]", &["expected `,` before the next key"]),
        (
            "[\"{\", \"a\", \"{}\", b]",
            &[
                "`{` is never closed: add the `}`, or write `{{` for a literal brace",
                "`{}` names nothing: write the argument between the braces, as in `{id}`",
                not_literal,
            ],
        ),
    ] {
        assert_eq!(mistakes(&format!("key = {keys}")), messages, "{keys}");
        let more = mistakes(&format!("key = {keys}, ttl = 1")).len();
        assert_eq!(more, messages.len() + 1, "{keys}");
    }
}
