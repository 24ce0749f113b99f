//! Settings, rules and `config/headcount.toml` tell the same story.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::*;

const SHIPPED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/headcount.toml"));

/// What the file leaves out because absence means something.
const COMMENTED_OUT: [&str; 4] = ["auth.keys", "likes.shards", "server.worker_threads", "storage.partitions"];

/// The rule of every setting, by its dotted key.
fn rules() -> BTreeMap<String, &'static Rule> {
    let keys = |rule: &'static Rule| match rule {
        Rule::Section(keys) => *keys,
        other => panic!("{other:?} where a section was expected"),
    };
    let sections = keys(const { &Config::RULE }).iter();
    sections
        .flat_map(|(section, rule)| {
            keys(rule).iter().map(move |(key, rule)| (format!("{section}.{key}"), rule))
        })
        .collect()
}

fn keys_of(settings: &Table) -> BTreeSet<String> {
    let names = |(section, value): (&String, &Value)| {
        let keys = value.as_table().unwrap().keys();
        keys.map(|key| format!("{section}.{key}")).collect::<Vec<_>>()
    };
    settings.iter().flat_map(names).collect()
}

/// The defaults with everything optional present, so that serializing shows every key there is.
fn full() -> Config {
    let mut config = Config::default();
    config.server.worker_threads = Some(2);
    config.storage.partitions = Some(2);
    config.likes.shards = Some(16);
    config
}

/// The file with its commented-out settings switched on.
fn uncommented() -> String {
    let setting =
        |line: &str| COMMENTED_OUT.iter().any(|key| line.starts_with(&format!("# {} = ", leaf(key))));
    SHIPPED.lines().map(|line| if setting(line) { &line[2..] } else { line }).collect::<Vec<_>>().join("\n")
}

fn leaf(key: &str) -> &str {
    key.rsplit('.').next().unwrap()
}

#[test]
fn the_shipped_file_is_the_defaults() {
    assert_eq!(toml::from_str::<Config>(SHIPPED).unwrap(), Config::default());
}

#[test]
fn every_setting_has_a_rule_and_every_rule_a_setting() {
    let settings = keys_of(&Table::try_from(full()).unwrap());
    assert_eq!(settings, rules().into_keys().collect());
}

#[test]
fn the_shipped_file_sets_every_setting_but_faults() {
    let every: BTreeSet<String> = rules().into_keys().filter(|key| !key.starts_with("faults.")).collect();
    assert_eq!(keys_of(&uncommented().parse().unwrap()), every);

    let absent: BTreeSet<String> = COMMENTED_OUT.map(str::to_owned).into();
    assert_eq!(keys_of(&SHIPPED.parse().unwrap()), &every - &absent);
}

#[test]
fn the_commented_out_settings_work_once_they_are_switched_on() {
    let config: Config = toml::from_str(&uncommented()).unwrap();
    config.validate().unwrap();
    assert_eq!((config.storage.partitions, config.likes.shards), (Some(2), Some(16)));
    assert_eq!(config.auth.keys.len(), 1);
}

#[test]
fn the_shipped_file_words_every_rule_as_an_error_would() {
    for (key, rule) in rules().into_iter().filter(|(key, _)| !key.starts_with("faults.")) {
        let (section, name) = key.split_once('.').unwrap();
        let (_, rest) = SHIPPED.split_once(&format!("\n[{section}]\n")).unwrap();
        let lines: Vec<&str> = rest.lines().take_while(|line| !line.starts_with('[')).collect();
        let sets = |line: &&str| line.trim_start_matches("# ").starts_with(&format!("{name} = "));
        let at = lines.iter().position(sets).unwrap();
        let above: Vec<&str> = lines[..at].iter().rev().map_while(|line| line.strip_prefix("# ")).collect();
        let comment = above.into_iter().rev().collect::<Vec<_>>().join(" ").to_lowercase();
        let worded = comment.contains(&rule.to_string().to_lowercase());
        assert!(worded || matches!(rule, Rule::Entries { .. }), "{key} lacks \"{rule}\" in: {comment}");
    }
}

/// The largest numbers that the rules allow fit the types, and every word is a variant.
#[test]
fn whatever_a_rule_allows_its_setting_holds() {
    for (key, rule) in rules() {
        let allowed: Vec<Value> = match rule {
            Rule::Whole { min, max } | Rule::PowerOfTwo { min, max } => vec![(*min).into(), (*max).into()],
            Rule::Word(words) => words.iter().map(|word| (*word).into()).collect(),
            _ => continue,
        };
        let (section, name) = key.split_once('.').unwrap();
        for value in allowed {
            let inner = Table::from_iter([(name.to_owned(), value.clone())]);
            let settings = Table::from_iter([(section.to_owned(), inner.into())]);
            let config: Config = settings.try_into().unwrap();
            assert_eq!(Table::try_from(&config).unwrap()[section][name], value, "{key}");
        }
    }
}

/// serde lists the variants when it meets an unknown one.
#[test]
fn every_variant_is_a_word_of_its_rule() {
    for (key, rule) in rules() {
        let Rule::Word(words) = rule else { continue };
        let error = toml::from_str::<Config>(&format!("{key} = '?'")).unwrap_err();
        assert_eq!(error.message().matches('`').count(), 2 * (words.len() + 1), "{key}: {}", error.message());
    }
    for scope in [Scope::Read, Scope::Write, Scope::Admin] {
        let key =
            ApiKey { name: "a".into(), sha256: "0".repeat(64).parse().unwrap(), scopes: [scope].into() };
        Config { auth: Auth { keys: vec![key], ..Default::default() }, ..Default::default() }
            .validate()
            .unwrap();
    }
}
