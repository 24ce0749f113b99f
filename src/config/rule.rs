//! What a setting accepts: one small language of rules, written beside each section's settings, that both decides and
//! words the refusal.

use std::{fmt, net::SocketAddr};

use toml::{Table, Value};

use super::problem::{Problem, Source};
use super::settings::SharedSecret;

/// The keys of a section (or of an entry in a list), each with its rule.
pub(crate) type Keys = &'static [(&'static str, Rule)];

/// What a value must be.
#[derive(Debug)]
pub(crate) enum Rule {
    /// A whole number within both bounds.
    Whole { min: i64, max: i64 },
    /// A power of two within both bounds.
    PowerOfTwo { min: i64, max: i64 },
    /// A number from 0 to 1.
    Ratio,
    /// `true` or `false`.
    Switch,
    /// An IP address and a port. Names are not resolved: what is listened on must not depend on a resolver.
    Address,
    /// The address of a server of HTTP without TLS, with or without a path.
    HttpAddress,
    /// Text of so many characters. Control characters are refused because settings end up in log lines; so is U+FFFD,
    /// which stands where a variable was no UTF-8.
    Text { min: usize, max: usize },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of at least one of these words.
    SomeWords(&'static [&'static str]),
    /// A SHA-256 as hex digits. Never shown: a secret in the clear may have been put there by mistake.
    Sha256,
    /// Base64 of bytes that sign. Never shown.
    Secret,
    /// A list of at most `max` origins, each as a browser writes it, or of `*` alone.
    Origins { max: usize },
    /// A list of at most `max` tables that have all of these keys. Never shown whole: it holds digests.
    Entries { max: usize, keys: Keys },
    /// A table that may have these keys and no other.
    Section(Keys),
}

/// Shorthand for the most frequent rule: a whole number from `min` to `max`.
pub(crate) const fn whole(min: i64, max: i64) -> Rule {
    Rule::Whole { min, max }
}

impl Rule {
    /// Adds to `problems` everything that is wrong with `value`, the value of `key` according to `source`.
    pub(crate) fn check(&self, source: &Source, key: &str, value: &Value, problems: &mut Vec<Problem>) {
        match (self, value) {
            (Rule::Section(keys), Value::Table(table)) => check_table(keys, source, key, table, problems),
            (Rule::Entries { max, keys }, Value::Array(entries)) if entries.len() <= *max => {
                for (index, entry) in entries.iter().enumerate() {
                    check_entry(keys, source, &format!("{key}[{index}]"), entry, problems);
                }
            }
            (rule, value) if rule.accepts(value) => {}
            (Rule::Section(_) | Rule::Entries { .. } | Rule::Sha256 | Rule::Secret, _) => {
                problems.push(Problem::key(source, key, format_args!("(value not shown): must be {self}")));
            }
            _ => problems.push(Problem::value(source, key, value, format_args!("must be {self}"))),
        }
    }

    /// Reads text from outside a file (a variable, a flag): as a TOML value if that has the type wanted here, else as
    /// the text itself. So `0.0.0.0:1` and `"0.0.0.0:1"` are both addresses, and a directory may be called `7`.
    pub(crate) fn read(&self, text: &str) -> Value {
        match text.parse::<Value>() {
            Ok(value) if self.wants_text() == value.is_str() => value,
            _ => Value::String(text.to_owned()),
        }
    }

    /// The rule of the setting at this dotted path, if there is one.
    pub(crate) fn find(&self, path: &[String]) -> Option<&Rule> {
        match (self, path) {
            (rule, []) => Some(rule),
            (Rule::Section(keys), [key, rest @ ..]) => rule_of(keys, key)?.find(rest),
            _ => None,
        }
    }

    fn wants_text(&self) -> bool {
        matches!(
            self,
            Rule::Address
                | Rule::HttpAddress
                | Rule::Text { .. }
                | Rule::Word(_)
                | Rule::Sha256
                | Rule::Secret
        )
    }

    /// Whether a value without keys of its own is allowed.
    fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Rule::Whole { min, max }, Value::Integer(number)) => (min..=max).contains(&number),
            (Rule::PowerOfTwo { min, max }, Value::Integer(number)) => {
                (min..=max).contains(&number) && number.count_ones() == 1
            }
            (Rule::Ratio, Value::Float(number)) => (0.0..=1.0).contains(number),
            (Rule::Ratio, Value::Integer(number)) => matches!(number, 0 | 1),
            (Rule::Switch, Value::Boolean(_)) => true,
            (Rule::Address, Value::String(text)) => text.parse::<SocketAddr>().is_ok(),
            (Rule::HttpAddress, Value::String(text)) => is_http_address(text),
            (Rule::Text { min, max }, Value::String(text)) => {
                (*min..=*max).contains(&text.chars().count())
                    && !text
                        .contains(|letter: char| letter.is_control() || letter == char::REPLACEMENT_CHARACTER)
                    && (*min == 0 || !text.trim().is_empty())
            }
            (Rule::Word(words), Value::String(text)) => words.contains(&text.as_str()),
            (Rule::SomeWords(words), Value::Array(items)) => {
                let known = |item: &Value| item.as_str().is_some_and(|text| words.contains(&text));
                !items.is_empty() && items.iter().all(known)
            }
            (Rule::Sha256, Value::String(text)) => {
                text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            (Rule::Secret, Value::String(text)) => text.parse::<SharedSecret>().is_ok(),
            (Rule::Origins { max }, Value::Array(origins)) => {
                let is_good = |origin: &Value| origin.as_str().is_some_and(is_origin);
                let is_any = matches!(&origins[..], [Value::String(any)] if any == "*");
                is_any || (origins.len() <= *max && origins.iter().all(is_good))
            }
            _ => false,
        }
    }
}

/// What is allowed, to follow "must be".
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Whole { min, max } => write!(f, "a whole number from {min} to {max}"),
            Rule::PowerOfTwo { min, max } => write!(f, "a power of two from {min} to {max}"),
            Rule::Ratio => f.write_str("a number from 0 to 1"),
            Rule::Switch => f.write_str("true or false"),
            Rule::Address => f.write_str("an IP address and port, such as 127.0.0.1:8787 or [::1]:8787"),
            Rule::HttpAddress => f.write_str("an address such as http://127.0.0.1:4318"),
            Rule::Text { min, max } => write!(f, "text of {min} to {max} characters, no control characters"),
            Rule::Word(words) => write!(f, "one of {}", words.join(", ")),
            Rule::SomeWords(words) => write!(f, "a list of at least one of {}", words.join(", ")),
            Rule::Sha256 => f.write_str("64 hex digits"),
            Rule::Secret => f.write_str("base64 of 32 to 1024 bytes"),
            Rule::Origins { max } => {
                write!(
                    f,
                    r#"a list of at most {max} origins such as "https://www.example.com", or of "*" alone"#
                )
            }
            Rule::Entries { max, keys } => write!(f, "a list of at most {max} tables with {}", names(keys)),
            Rule::Section(keys) => write!(f, "a section with any of {}", names(keys)),
        }
    }
}

fn check_table(keys: Keys, source: &Source, at: &str, table: &Table, problems: &mut Vec<Problem>) {
    for (name, value) in table {
        let path = join(at, name);
        match rule_of(keys, name) {
            Some(rule) => rule.check(source, &path, value, problems),
            None => {
                let why = format_args!("is not a setting; allowed here: {}", names(keys));
                problems.push(Problem::key(source, &path, why));
            }
        }
    }
}

fn check_entry(keys: Keys, source: &Source, at: &str, entry: &Value, problems: &mut Vec<Problem>) {
    let Value::Table(table) = entry else {
        problems.push(Problem::key(
            source,
            at,
            format_args!("(value not shown): must be a table with {}", names(keys)),
        ));
        return;
    };
    check_table(keys, source, at, table, problems);
    for (name, rule) in keys.iter().filter(|(name, _)| !table.contains_key(*name)) {
        problems.push(Problem::key(source, &join(at, name), format_args!("is missing: must be {rule}")));
    }
}

/// Whether a browser could send this text in `Origin`: a scheme, a host and perhaps a port, in lower case and without what
/// the scheme implies. Anything else would never match and so hide a mistake.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.')
        });
    let is_letter = |byte: u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'-' | b'.' | b'_' | b':' | b'[' | b']')
    };
    let implied = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    is_scheme
        && !authority.is_empty()
        && authority.len() <= 255
        && authority.bytes().all(is_letter)
        && (implied.is_empty() || !authority.ends_with(implied))
}

/// An address on the command line.
///
/// # Errors
/// What it must be, in the words that the settings have for it.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("must be {}", Rule::Address))
}

/// Whether this is plain HTTP to a host, perhaps with a port and a path. No user, no query: neither is asked for.
fn is_http_address(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://").filter(|rest| rest.len() <= 255) else { return false };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = |text: &str, more: &[u8]| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte) || more.contains(&byte))
    };
    !host.is_empty() && !host.starts_with(':') && is_plain(host, b":[]") && is_plain(path, b"/~")
}

fn rule_of(keys: Keys, name: &str) -> Option<&'static Rule> {
    keys.iter().find(|(key, _)| *key == name).map(|(_, rule)| rule)
}

fn names(keys: Keys) -> String {
    keys.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// One step down a dotted path. A name that needs quotes in TOML gets them, which also keeps the path on one line.
pub(crate) fn join(at: &str, name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let quoted =
        if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { format!("{name:?}") };
    if at.is_empty() { quoted } else { format!("{at}.{quoted}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule::Section(&[
        ("count", whole(1, 9)),
        ("page", Rule::PowerOfTwo { min: 512, max: 65_536 }),
        ("open", Rule::Switch),
        ("ratio", Rule::Ratio),
        ("listen", Rule::Address),
        ("collector", Rule::HttpAddress),
        ("name", Rule::Text { min: 1, max: 3 }),
        ("level", Rule::Word(&["low", "high"])),
        (
            "keys",
            Rule::Entries {
                max: 2,
                keys: &[("sha256", Rule::Sha256), ("scopes", Rule::SomeWords(&["read", "write"]))],
            },
        ),
    ]);

    fn problems(toml: &str) -> Vec<String> {
        let mut problems = Vec::new();
        RULE.check(&Source::BuiltIn, "", &Value::Table(toml.parse().unwrap()), &mut problems);
        problems.iter().map(|problem| problem.to_string().replacen("built-in: ", "", 1)).collect()
    }

    #[test]
    fn both_sides_of_every_bound() {
        for allowed in [
            "count = 1",
            "count = 9",
            "page = 512",
            "page = 65536",
            "open = false",
            "ratio = 0",
            "ratio = 0.0",
            "ratio = 0.25",
            "ratio = 1.0",
            "ratio = 1",
            "listen = '[::1]:0'",
            "collector = 'http://127.0.0.1:4318'",
            "collector = 'http://[::1]:4318/'",
            "collector = 'http://otel-collector.example/some/path'",
            "name = 'a'",
            "name = 'äöü'",
            "level = 'high'",
            "keys = []",
        ] {
            assert_eq!(problems(allowed), [""; 0], "{allowed}");
        }
        for refused in [
            "count = 0",
            "count = 10",
            "count = 1.0",
            "count = '1'",
            "page = 256",
            "page = 131072",
            "page = 4095",
            "page = -9223372036854775808",
            "open = 1",
            "ratio = -0.1",
            "ratio = 1.1",
            "ratio = nan",
            "ratio = 2",
            "ratio = '1'",
            "collector = '127.0.0.1:4318'",
            "collector = 'https://127.0.0.1:4318'",
            "collector = 'http://'",
            "collector = 'http://:4318'",
            "collector = 'http://ada@example.com'",
            "collector = 'http://example.com?a=b'",
            "collector = 'http://example.com/ '",
            "collector = 4318",
            "listen = 'localhost:1'",
            "listen = 8787",
            "name = ''",
            "name = ' '",
            "name = 'abcd'",
            r#"name = "a\n""#,
            "name = 'a\u{fffd}'",
            "level = 'HIGH'",
            "keys = [{}, {}, {}]",
            "keys = 1",
        ] {
            assert_eq!(problems(refused).len(), 1, "{refused}");
        }
    }

    #[test]
    fn a_refusal_says_what_is_allowed() {
        assert_eq!(problems("count = 0"), ["count = 0: must be a whole number from 1 to 9"]);
        assert_eq!(problems("page = 513"), ["page = 513: must be a power of two from 512 to 65536"]);
        assert_eq!(problems("level = 'mid'"), [r#"level = "mid": must be one of low, high"#]);
        assert_eq!(
            problems("cuont = 1\n'a.b' = 1"),
            [
                r#""a.b" is not a setting; allowed here: count, page, open, ratio, listen, collector, name, level, keys"#,
                "cuont is not a setting; allowed here: count, page, open, ratio, listen, collector, name, level, keys",
            ]
        );
    }

    #[test]
    fn entries_are_checked_one_by_one_and_digests_never_shown() {
        let secret = "5e884898da28047151d0e56f8dc62927";
        assert_eq!(
            problems(&format!(
                "keys = [{{ sha256 = '{secret}', scopes = ['read'] }}, {{ scopes = ['raed'], x = 1 }}]"
            )),
            [
                "keys[0].sha256 (value not shown): must be 64 hex digits",
                r#"keys[1].scopes = ["raed"]: must be a list of at least one of read, write"#,
                "keys[1].x is not a setting; allowed here: sha256, scopes",
                "keys[1].sha256 is missing: must be 64 hex digits",
            ]
        );
        assert_eq!(
            problems(&format!("keys = '{secret}'")),
            ["keys (value not shown): must be a list of at most 2 tables with sha256, scopes"]
        );
    }

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        let rule = Rule::Origins { max: 2 };
        let accepts = |text: &str| rule.accepts(&text.parse().unwrap());
        for good in [
            "[]",
            "['*']",
            "['https://www.example.com']",
            "['http://localhost:3000', 'http://[::1]:8080']",
            "['capacitor://localhost']",
        ] {
            assert!(accepts(good), "{good}");
        }
        for bad in [
            "'*'",
            "['*', 'https://a.example']",
            "['https://a.example', 'https://b.example', 'https://c.example']",
            "['https://www.example.com/']",
            "['https://www.example.com/page']",
            "['HTTPS://www.example.com']",
            "['https://www.Example.com']",
            "['https://www.example.com:443']",
            "['http://www.example.com:80']",
            "['www.example.com']",
            "['https://*.example.com']",
            "['https://ada@example.com']",
            "['https://']",
            "['null']",
            "['']",
            "[1]",
        ] {
            assert!(!accepts(bad), "{bad}");
        }
    }

    #[test]
    fn text_from_outside_is_read_as_the_type_that_is_wanted() {
        assert_eq!(whole(1, 9).read("4"), Value::Integer(4));
        assert_eq!(whole(1, 9).read("four"), Value::String("four".into()));
        assert_eq!(whole(1, 9).read("4\nopen = true"), Value::String("4\nopen = true".into()));
        assert_eq!(Rule::Switch.read("true"), Value::Boolean(true));
        let text = Rule::Text { min: 1, max: 9 };
        assert_eq!(text.read("7"), Value::String("7".into()));
        assert_eq!(text.read("\"7\""), Value::String("7".into()));
        assert_eq!(text.read("true"), Value::String("true".into()));
        assert_eq!(Rule::Address.read("0.0.0.0:1"), Value::String("0.0.0.0:1".into()));
    }
}
