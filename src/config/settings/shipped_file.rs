//! Settings, rules and `config/headcount.toml` tell the same story.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::*;
use crate::config::rule::join;

const SHIPPED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/headcount.toml"));

/// What the file leaves out because absence means something.
const COMMENTED_OUT: [&str; 8] = [
    "auth.keys",
    "auth.token_secrets",
    "likes.shards",
    "namespaces.likes.confirm",
    "namespaces.workshops.confirm",
    "server.worker_threads",
    "storage.partitions",
    "telemetry.otlp_endpoint",
];

/// The rule of every setting, by its dotted key.
fn rules() -> BTreeMap<String, &'static Rule> {
    fn below(at: &str, rule: &'static Rule, found: &mut BTreeMap<String, &'static Rule>) {
        match rule {
            Rule::Section(keys) => keys.iter().for_each(|(key, rule)| below(&join(at, key), rule, found)),
            rule => drop(found.insert(at.to_owned(), rule)),
        }
    }
    let mut found = BTreeMap::new();
    below("", const { &Config::RULE }, &mut found);
    found
}

fn keys_of(settings: &Table) -> BTreeSet<String> {
    fn below(at: &str, value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Table(table) => table.iter().for_each(|(key, value)| below(&join(at, key), value, found)),
            _ => drop(found.insert(at.to_owned())),
        }
    }
    let mut found = BTreeSet::new();
    settings.iter().for_each(|(key, value)| below(key, value, &mut found));
    found
}

/// Settings in which this one is set.
fn setting(key: &str, value: &Value) -> Table {
    toml::from_str(&format!("{key} = {value}")).unwrap()
}

fn value_of(settings: &Table, key: &str) -> Value {
    let mut names = key.split('.');
    let first = settings[names.next().unwrap()].clone();
    names.fold(first, |at, name| at[name].clone())
}

/// The defaults with everything optional present, so that serializing shows every key there is.
fn full() -> Config {
    let mut config = Config::default();
    config.server.worker_threads = Some(2);
    config.storage.partitions = Some(2);
    config.likes.shards = Some(16);
    config.namespaces.likes.confirm = Some("0123456789abcdef".to_owned());
    config.namespaces.workshops.confirm = config.namespaces.likes.confirm.clone();
    config.telemetry.otlp_endpoint = Some("http://127.0.0.1:4318".to_owned());
    config
}

/// What stands in the file for a secret. It is none: one that everybody can read would sign for everybody.
const HOW_TO_MAKE_A_SECRET: &str = "openssl rand -base64 32";
const A_SECRET: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// The file with its commented-out settings switched on.
fn uncommented() -> String {
    let setting =
        |line: &str| COMMENTED_OUT.iter().any(|key| line.starts_with(&format!("# {} = ", leaf(key))));
    let lines = SHIPPED.lines().map(|line| if setting(line) { &line[2..] } else { line });
    lines.collect::<Vec<_>>().join("\n").replace(HOW_TO_MAKE_A_SECRET, A_SECRET)
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
    let mut config: Config = toml::from_str(&uncommented()).unwrap();
    if !cfg!(feature = "otel") {
        // That needs another binary.
        config.telemetry.otlp_endpoint = None;
    }
    config.validate().unwrap();
    assert_eq!((config.storage.partitions, config.likes.shards), (Some(2), Some(16)));
    assert_eq!((config.auth.keys.len(), config.auth.token_secrets.len()), (1, 1));
}

#[test]
fn the_shipped_file_holds_no_secret_that_works() {
    let example = uncommented().replace(A_SECRET, HOW_TO_MAKE_A_SECRET);
    let refused = toml::from_str::<Config>(&example).unwrap_err();
    assert!(refused.message().contains("must be base64 of 32 to 1024 bytes"), "{refused}");
}

#[test]
fn the_shipped_file_words_every_rule_as_an_error_would() {
    for (key, rule) in rules().into_iter().filter(|(key, _)| !key.starts_with("faults.")) {
        let (section, name) = key.rsplit_once('.').unwrap();
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
        for value in allowed {
            let config: Config = setting(&key, &value).try_into().unwrap();
            assert_eq!(value_of(&Table::try_from(&config).unwrap(), &key), value, "{key}");
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
