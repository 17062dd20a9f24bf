//! What the template parser reads, prints and refuses.

use super::*;

fn parts(source: &str) -> Vec<String> {
    let template: Template = source.parse().unwrap();
    let printed = template.to_string();
    assert_eq!(printed.parse().as_ref(), Ok(&template), "{printed}");
    template
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Value(value) => format!("<{}|{}>", value.expr, value.spec),
        })
        .collect()
}

fn error(source: &str) -> TemplateError {
    source.parse::<Template>().unwrap_err()
}

#[test]
fn splits_text_and_placeholders() {
    for (source, expected) in [
        ("nightly", &["nightly"][..]),
        ("stock:{id}", &["stock:", "<id|>"]),
        ("{a}:{b:08}", &["<a|>", ":", "<b|08>"]),
        ("{{literal}}:{x:?}", &["{literal}:", "<x|?>"]),
        ("{id:}", &["<id|>"]),
        ("{ id }", &["< id |>"]),
        ("{self.shop}", &["<self.shop|>"]),
        ("{order.items.len()}", &["<order.items.len()|>"]),
        ("{shop::ID}", &["<shop::ID|>"]),
        ("{f::<u8>(x):>4}", &["<f::<u8>(x)|>4>"]),
        ("{id::>8}", &["<id|:>8>"]),
        ("{shop::ID::^8}", &["<shop::ID|:^8>"]),
        ("{if a {1} else {2}}", &["<if a {1} else {2}|>"]),
        ("{m[\"}:\"]}", &["<m[\"}:\"]|>"]),
        ("{m['}']:?}", &["<m['}']|?>"]),
        ("{m['\\'']}", &["<m['\\'']|>"]),
        ("{f::<'a>(x)}", &["<f::<'a>(x)|>"]),
        (
            "{xs.iter().map(|x: &u8| x).count()}",
            &["<xs.iter().map(|x: &u8| x).count()|>"],
        ),
        (
            "{s.split(\"\\\"\").count()}",
            &["<s.split(\"\\\"\").count()|>"],
        ),
        ("größe:{größe}", &["größe:", "<größe|>"]),
    ] {
        assert_eq!(parts(source), expected, "{source}");
    }
}

#[test]
fn knows_plain_names() {
    for (expr, is_name) in [
        ("id", true),
        ("_id", true),
        ("größe", true),
        ("type", true),
        ("r#type", false),
        ("self", false),
        ("_", false),
        (" id", false),
        ("id.x", false),
        ("7", false),
    ] {
        let placeholder = Placeholder {
            expr: expr.to_owned(),
            spec: String::new(),
        };
        assert_eq!(placeholder.name().is_some(), is_name, "{expr}");
    }
}

#[test]
fn says_what_is_wrong() {
    assert_eq!(error("a:{}"), TemplateError::EmptyPlaceholder);
    assert_eq!(error("a:{ :?}"), TemplateError::EmptyPlaceholder);
    assert_eq!(error("a:{id"), TemplateError::Unclosed("id".into()));
    assert_eq!(error("a:{id:08"), TemplateError::Unclosed("id:08".into()));
    assert_eq!(error("a:{f(}"), TemplateError::Unclosed("f(}".into()));
    assert_eq!(error("a}b"), TemplateError::Unopened);
    assert_eq!(
        error("{id:**<}"),
        TemplateError::Parameter("{id:**<}".into(), '*')
    );
    assert_eq!(
        error("{id:w$}"),
        TemplateError::Parameter("{id:w$}".into(), '$')
    );
    assert_eq!(
        error("{id:.*}"),
        TemplateError::Parameter("{id:.*}".into(), '*')
    );
    assert_eq!(
        error("{id:{w}}"),
        TemplateError::NestedSpec("{id:{w}".into())
    );
}

#[test]
fn any_character_may_fill() {
    for template in ["{id:*>8}", "{id:$<8}", "{id:*^#10x}", "{id:->8}"] {
        assert_eq!(template.parse::<Template>().unwrap().to_string(), template);
    }
}
