use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::config::rule::{Keys, Rule};
use crate::config::{Likes, LogLevel, Scope};

const SHA256: &str = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";

/// What an error lists.
fn names(keys: Keys) -> String {
    keys.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// A settings file that is gone after the test.
struct File(PathBuf);

impl File {
    fn new(toml: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("headcount-{}-{number}.toml", std::process::id()));
        fs::write(&path, toml).unwrap();
        Self(path)
    }

    fn load(&self, env: &[(&str, &str)], flags: &[Flag]) -> Result<Loaded, String> {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let file = self.0.display().to_string();
        Config::load(FileChoice::Explicit(self.0.clone()), env, flags)
            .map_err(|error| error.to_string().replace(&file, "test.toml"))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn load(toml: &str, env: &[(&str, &str)], flags: &[Flag]) -> Result<Loaded, String> {
    File::new(toml).load(env, flags)
}

fn listen(value: &str) -> Flag {
    Flag { name: "--listen", key: "server.listen", value: value.into() }
}

#[test]
fn nothing_set_is_the_defaults() {
    assert_eq!(load("", &[("PATH", "/bin"), ("HEADCOUNT_X", "1")], &[]).unwrap().config, Config::default());
}

#[test]
fn the_default_file_may_be_missing_an_explicit_one_may_not() {
    // Unit tests run in the package's root, where the default file is the shipped one.
    let loaded = Config::load(FileChoice::from(None), [].into_iter(), &[]).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.sources.to_string(), "built-in defaults, config/headcount.toml");

    assert!(read_file(PathBuf::from("config/nowhere.toml"), true).unwrap().is_none());
    assert!(read_file(PathBuf::from("config"), true).is_err());
    let missing = FileChoice::from(Some(PathBuf::from("config/nowhere.toml")));
    let error = Config::load(missing, [].into_iter(), &[]).unwrap_err().to_string();
    assert!(error.starts_with("config/nowhere.toml: cannot be read: No such file"), "{error}");
}

#[test]
fn each_layer_covers_the_one_before_key_by_key() {
    let file = "server = { listen = '127.0.0.1:1', retry_after_s = 2 }\nlikes.shards = 2\nbatch.max = 2";
    let env = [("HEADCOUNT__SERVER__LISTEN", "127.0.0.1:3"), ("HEADCOUNT__LIKES__SHARDS", "3")];
    let Loaded { config, sources } = load(file, &env, &[listen("127.0.0.1:4")]).unwrap();

    assert_eq!(config.server.listen.port(), 4);
    assert_eq!(config.likes.shards, Some(3));
    assert_eq!((config.server.retry_after_s, config.batch.max), (2, 2));
    assert_eq!(config.batch.max_per_actor, 256);

    assert_eq!(sources.of("server.listen"), Source::Flag("--listen"));
    assert_eq!(sources.of("likes.shards"), Source::Environment("HEADCOUNT__LIKES__SHARDS".into()));
    assert!(matches!(sources.of("batch.max"), Source::File(_)));
    assert_eq!(sources.of("batch.max_per_actor"), Source::BuiltIn);
    assert_eq!(sources.layers().len(), 4);
    assert!(sources.to_string().ends_with(
        ".toml, environment HEADCOUNT__LIKES__SHARDS, environment HEADCOUNT__SERVER__LISTEN, flag --listen"
    ));
}

#[test]
fn variables_hold_toml_values_or_plain_text() {
    let keys = format!("[{{ name = 'ops', sha256 = '{SHA256}', scopes = ['read', 'admin'] }}]");
    let env = [
        ("HEADCOUNT__SERVER__LISTEN", "0.0.0.0:1"),
        ("HEADCOUNT__STORAGE__DATA_DIR", "7"),
        ("HEADCOUNT__LOG__LEVEL", "\"debug\""),
        ("HEADCOUNT__LOG__DECISIONS", "false"),
        ("HEADCOUNT__BATCH", "{ max = 1_000 }"),
        ("HEADCOUNT__AUTH__KEYS", &keys),
    ];
    let config = load("", &env, &[]).unwrap().config;
    assert_eq!(config.server.listen.to_string(), "0.0.0.0:1");
    assert_eq!(config.storage.data_dir, PathBuf::from("7"));
    assert_eq!((config.log.level, config.log.decisions), (LogLevel::Debug, false));
    assert_eq!((config.batch.max, config.batch.max_per_actor), (1_000, 256));
    assert_eq!(config.auth.keys[0].scopes, [Scope::Read, Scope::Admin].into());
}

#[test]
fn an_error_names_source_key_value_and_what_is_allowed() {
    assert_eq!(
        load("likes.shards = 0", &[], &[]).unwrap_err(),
        "test.toml: likes.shards = 0: must be a whole number from 1 to 4096"
    );
    assert_eq!(
        load("", &[("HEADCOUNT__LIKES__SHRDS", "4")], &[]).unwrap_err(),
        format!(
            "environment HEADCOUNT__LIKES__SHRDS: likes.shrds is not a setting; allowed here: {}",
            names(Likes::KEYS)
        )
    );
    assert_eq!(
        load("", &[], &[listen("localhost:1")]).unwrap_err(),
        "flag --listen: server.listen = \"localhost:1\": \
         must be an IP address and port, such as 127.0.0.1:8787 or [::1]:8787"
    );
    assert_eq!(
        load("", &[("HEADCOUNT__auth__Open", "true")], &[]).unwrap_err(),
        "environment HEADCOUNT__auth__Open: auth.open is set in upper case: HEADCOUNT__AUTH__OPEN"
    );
}

#[test]
fn all_problems_of_all_layers_are_told_at_once_also_those_a_later_layer_covers() {
    let env = [("HEADCOUNT__LIKES__SHARDS", "4"), ("HEADCOUNT__LOG__FORMAT", "xml"), ("HEADCOUNT__", "")];
    let Rule::Section(sections) = Config::RULE else { panic!() };
    let sections = names(sections);
    assert_eq!(
        load("speed = 1\nserver = 2\n[likes]\nshards = 'many'", &env, &[listen("")])
            .unwrap_err()
            .lines()
            .collect::<Vec<_>>(),
        [
            "test.toml: likes.shards = \"many\": must be a whole number from 1 to 4096",
            "test.toml: server (value not shown): must be a section with any of listen, admin_listen, backlog, max_connections, \
             header_timeout_ms, write_timeout_ms, request_timeout_ms, max_body_bytes, drain_timeout_ms, worker_threads, retry_after_s, \
             noop_routes, cors_origins, demo, max_console_viewers",
            &format!("test.toml: speed is not a setting; allowed here: {sections}"),
            &format!("environment HEADCOUNT__: \"\" is not a setting; allowed here: {sections}"),
            "environment HEADCOUNT__LOG__FORMAT: log.format = \"xml\": must be one of auto, json, human",
            "flag --listen: server.listen = \"\": must be an IP address and port, such as 127.0.0.1:8787 or [::1]:8787",
        ]
    );
}

#[test]
fn faults_exist_in_debug_builds_alone() {
    let loaded = load("[faults]\nfail_commit_every = 3", &[("HEADCOUNT__FAULTS__PANIC_ON", "7")], &[]);
    #[cfg(debug_assertions)]
    {
        let faults = loaded.unwrap().config.faults;
        assert_eq!((faults.fail_commit_every, faults.panic_on.as_str()), (3, "7"));
    }
    #[cfg(not(debug_assertions))]
    assert!(loaded.unwrap_err().starts_with("test.toml: faults is not a setting; allowed here: server, "));
}

#[test]
fn a_syntax_error_names_its_place_and_never_repeats_the_line() {
    for (toml, place) in [
        ("[server]\nlisten == 1", "test.toml, line 2, column 9: "),
        ("a = 1\na = 2", "test.toml, line 2, column 1: "),
        ("\n[server", "test.toml, line 2, column 8: "),
        ("é = 1", "test.toml, line 1, column 1: "),
        (&format!("auth.keys = [{{ sha256 = \"{SHA256} }}]"), "test.toml, line 1, column "),
    ] {
        let error = load(toml, &[], &[]).unwrap_err();
        assert!(error.starts_with(place), "{error}");
        assert!(!error.contains('\n') && !error.contains(SHA256), "{error}");
    }
}

#[test]
fn a_digest_is_never_shown_whole_wherever_it_was_put() {
    for toml in [
        format!("auth.keys = '{SHA256}'"),
        format!("auth.keys = ['{SHA256}']"),
        format!("auth = '{SHA256}'"),
        format!("auth.open = '{SHA256}'"),
        format!("auth.keys = [{{ name = 'a', sha256 = '{SHA256}0', scopes = ['read'] }}]"),
        format!("auth.keys = [{{ name = 'a', sha256 = ['{SHA256}'], scopes = '{SHA256}' }}]"),
        format!("auth.keys = [{{ name = 'é{SHA256}', sha256 = '{SHA256}', scopes = ['{SHA256}'] }}]"),
    ] {
        let error = load(&toml, &[], &[]).unwrap_err();
        assert!(!error.contains(SHA256), "{error}");
    }
    let unclosed = format!("[{{ sha256 = '{SHA256}'");
    assert!(!load("", &[("HEADCOUNT__AUTH__KEYS", &unclosed)], &[]).unwrap_err().contains(SHA256));
}

#[test]
fn a_rule_between_settings_names_both_sources() {
    assert_eq!(
        load("mailbox.deadline_ms = 3000", &[("HEADCOUNT__SERVER__REQUEST_TIMEOUT_MS", "3000")], &[])
            .unwrap_err(),
        "test.toml: mailbox.deadline_ms = 3000: must be below server.request_timeout_ms = 3000 \
         (environment HEADCOUNT__SERVER__REQUEST_TIMEOUT_MS)"
    );
    assert_eq!(
        load("", &[], &[listen("0.0.0.0:80")]).unwrap_err(),
        "flag --listen: server.listen = \"0.0.0.0:80\": lets other machines in, and no key is set: set auth.keys, or \
         auth.open = true to serve everyone, or listen on a loopback address such as 127.0.0.1"
    );
}

#[test]
fn the_user_of_a_setting_refuses_it_in_the_same_words() {
    let loaded = load("", &[("HEADCOUNT__ROLLUP__SCHEDULE", "hourly")], &[]).unwrap();
    assert_eq!(
        loaded.refuse("rollup.schedule", "must be cron with seconds").to_string(),
        "environment HEADCOUNT__ROLLUP__SCHEDULE: rollup.schedule = \"hourly\": must be cron with seconds"
    );
    let shards = loaded.refuse("likes.shards", "must be set").to_string();
    assert_eq!(shards, "built-in: likes.shards must be set");
}
