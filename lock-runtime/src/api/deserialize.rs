//! Reads a configuration with `serde`, as a part of another one.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::api::config::LockConfig;
use crate::api::named::SETTINGS;

/// A URL, or a map with `url` and settings, which override those in the URL.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl<'de> Deserialize<'de> for LockConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UrlOrMap)
    }
}

struct UrlOrMap;

impl<'de> Visitor<'de> for UrlOrMap {
    type Value = LockConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a URL, or a map with `url` and settings")
    }

    fn visit_str<E: Error>(self, url: &str) -> Result<LockConfig, E> {
        LockConfig::new(url).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LockConfig, A::Error> {
        let (mut url, mut settings) = (None, Vec::new());
        while let Some((name, Text(text))) = map.next_entry::<String, Text>()? {
            if name == "url" {
                url = Some(text);
            } else if let Some(setting) = SETTINGS.iter().find(|it| it.name == name) {
                settings.push((setting, text));
            } else {
                let known: Vec<_> = SETTINGS.iter().map(|it| it.name).collect();
                let known = known.join(", ");
                let error = format_args!("no setting `{name}`: there are url, {known}");
                return Err(A::Error::custom(error));
            }
        }
        let url = url.ok_or_else(|| A::Error::missing_field("url"))?;
        let config = LockConfig::new(url).map_err(A::Error::custom)?;
        let config = settings
            .into_iter()
            .try_fold(config, |config, (setting, text)| setting.set(config, &text));
        config.map_err(A::Error::custom)
    }
}

/// A value as in a URL: numbers and booleans need no quotes.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyText)
    }
}

struct AnyText;

impl Visitor<'_> for AnyText {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, or `true` or `false`")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Text, E> {
        Ok(Text(value.to_string()))
    }
}
