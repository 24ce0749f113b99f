//! What settings must be besides what each may be alone: the rules between them.

use std::net::SocketAddr;

use toml::Value;

use super::{Config, ConfigError, Problem, Sources, TokenSecret};

impl Config {
    /// Checks every bound and every rule between settings. [`Config::load`] has done so; a `Config` built by hand has
    /// not been checked.
    ///
    /// # Errors
    /// [`ConfigError::Refused`] with all problems found; it blames the values on
    /// [`Source::BuiltIn`](super::Source::BuiltIn).
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sources = Sources::default();
        let mut problems = Vec::new();
        match Value::try_from(self) {
            Ok(value) => Config::RULE.check(&sources.of(""), "", &value, &mut problems),
            // A number beyond TOML's 64 bits, or a path that is no UTF-8: out of every bound here.
            Err(error) => {
                problems.push(Problem::key(&sources.of(""), "settings", format_args!("are no TOML: {error}")))
            }
        }
        problems.extend(self.conflicts(&sources));
        ConfigError::unless_empty(problems)
    }

    /// The rules between settings that are broken.
    pub(super) fn conflicts(&self, sources: &Sources) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |key: &str, value: Value, why: String| {
            problems.push(Problem::value(&sources.of(key), key, &value, why));
        };

        let (mailbox, server) = (&self.mailbox, &self.server);
        if mailbox.actor_capacity > mailbox.capacity {
            let why = format!("must be at most {}", beside(sources, "mailbox.capacity", mailbox.capacity));
            refuse("mailbox.actor_capacity", number(mailbox.actor_capacity), why);
        }
        if mailbox.deadline_ms >= server.request_timeout_ms {
            let why = format!(
                "must be below {}",
                beside(sources, "server.request_timeout_ms", server.request_timeout_ms)
            );
            refuse("mailbox.deadline_ms", number(mailbox.deadline_ms), why);
        }
        let bulk = &self.bulk;
        if bulk.window_lines > bulk.max_lines {
            let why = format!("must be at most {}", beside(sources, "bulk.max_lines", bulk.max_lines));
            refuse("bulk.window_lines", number(bulk.window_lines), why);
        }
        let reservations = &self.reservations;
        if reservations.hold_ttl_ms > reservations.max_hold_ms {
            let why = format!(
                "must be at most {}",
                beside(sources, "reservations.max_hold_ms", reservations.max_hold_ms)
            );
            refuse("reservations.hold_ttl_ms", number(reservations.hold_ttl_ms), why);
        }
        if self.rollup.trending_items < self.likes.max_trending {
            let why = format!(
                "must be at least {}",
                beside(sources, "likes.max_trending", self.likes.max_trending)
            );
            refuse("rollup.trending_items", number(self.rollup.trending_items), why);
        }
        let rooms = &self.rooms;
        if rooms.ping_interval_ms >= rooms.idle_timeout_ms {
            let why =
                format!("must be below {}", beside(sources, "rooms.idle_timeout_ms", rooms.idle_timeout_ms));
            refuse("rooms.ping_interval_ms", number(rooms.ping_interval_ms), why);
        }
        if rooms.queue_bytes <= rooms.max_message_bytes {
            let why = format!(
                "must be above {}",
                beside(sources, "rooms.max_message_bytes", rooms.max_message_bytes)
            );
            refuse("rooms.queue_bytes", number(rooms.queue_bytes), why);
        }
        if rooms.retry_max_ms < rooms.retry_min_ms {
            let why =
                format!("must be at least {}", beside(sources, "rooms.retry_min_ms", rooms.retry_min_ms));
            refuse("rooms.retry_max_ms", number(rooms.retry_max_ms), why);
        }
        for (key, address) in [("server.listen", server.listen), ("server.admin_listen", server.admin_listen)]
        {
            if !is_loopback(address) && self.auth.asks_nobody() && !self.auth.open {
                let why = "lets other machines in, and no key is set: set auth.keys, or auth.open = true to serve \
                           everyone, or listen on a loopback address such as 127.0.0.1";
                refuse(key, Value::String(address.to_string()), why.to_owned());
            }
        }
        if server.cors_origins.iter().any(|origin| origin == "*")
            && self.auth.asks_nobody()
            && !self.auth.open
        {
            let why = "lets the page of any site that somebody here visits use a service that asks nobody who they are: \
                       name the origins, or set auth.keys or auth.token_secrets, or auth.open = true";
            let value = Value::Array(vec![Value::String("*".to_owned())]);
            refuse("server.cors_origins", value, why.to_owned());
        }
        if let Some(endpoint) = &self.telemetry.otlp_endpoint
            && !cfg!(feature = "otel")
        {
            let why = "needs a binary with traces in it, and this one was built without: \
                       cargo build --release --features otel";
            refuse("telemetry.otlp_endpoint", Value::String(endpoint.clone()), why.to_owned());
        }
        problems.extend(self.twins(sources));
        problems.extend(self.twin_secrets(sources));
        problems
    }

    /// Secrets that share a name (a `kid` could not tell them apart), or that are the same (rotating to it would change
    /// nothing).
    fn twin_secrets(&self, sources: &Sources) -> Vec<Problem> {
        let source = sources.of("auth.token_secrets");
        let secrets = &self.auth.token_secrets;
        let mut problems = Vec::new();
        for (index, secret) in secrets.iter().enumerate() {
            let first = |same: fn(&TokenSecret, &TokenSecret) -> bool| {
                secrets.iter().take(index).position(|other| same(other, secret))
            };
            let at = |key: &str| format!("auth.token_secrets[{index}].{key}");
            if let Some(first) = first(|one, other| one.name == other.name) {
                let name = Value::String(secret.name.clone());
                let why = format_args!("must differ from the name of auth.token_secrets[{first}]");
                problems.push(Problem::value(&source, &at("name"), &name, why));
            }
            if let Some(first) = first(|one, other| one.secret_base64 == other.secret_base64) {
                let why =
                    format_args!("(value not shown): must differ from that of auth.token_secrets[{first}]");
                problems.push(Problem::key(&source, &at("secret_base64"), why));
            }
        }
        problems
    }

    /// Keys that share a name (the log could not tell their holders apart) or a digest (nor could a check of scopes).
    fn twins(&self, sources: &Sources) -> Vec<Problem> {
        let source = sources.of("auth.keys");
        let keys = &self.auth.keys;
        let mut problems = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            if let Some(first) = keys.iter().take(index).position(|other| other.name == key.name) {
                let (at, name) = (format!("auth.keys[{index}].name"), Value::String(key.name.clone()));
                let why = format_args!("must differ from the name of auth.keys[{first}]");
                problems.push(Problem::value(&source, &at, &name, why));
            }
            if let Some(first) = keys.iter().take(index).position(|other| other.sha256 == key.sha256) {
                let why =
                    format_args!("(value not shown): must differ from the sha256 of auth.keys[{first}]");
                problems.push(Problem::key(&source, &format!("auth.keys[{index}].sha256"), why));
            }
        }
        problems
    }
}

/// The other setting of a rule, with its value and where that came from: either may be the one to change.
fn beside(sources: &Sources, key: &str, value: impl std::fmt::Display) -> String {
    format!("{key} = {value} ({})", sources.of(key))
}

/// A number for display; nothing that passed its bounds is beyond TOML's 64 bits.
fn number(value: impl TryInto<i64>) -> Value {
    Value::Integer(value.try_into().unwrap_or(i64::MAX))
}

/// Whether only this machine reaches the address; `::ffff:127.0.0.1` is `127.0.0.1`.
fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ApiKey, Scope};

    fn refusal(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        change(&mut config);
        config.validate().map_or_else(|error| error.to_string(), |()| String::new())
    }

    fn key(name: &str, digit: &str) -> ApiKey {
        ApiKey { name: name.into(), sha256: digit.repeat(64).parse().unwrap(), scopes: [Scope::Read].into() }
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(refusal(|_| ()), "");
    }

    #[test]
    fn traces_need_a_binary_that_makes_them() {
        let refused = refusal(|config| config.telemetry.otlp_endpoint = Some("http://127.0.0.1:4318".into()));
        let why = "built-in: telemetry.otlp_endpoint = \"http://127.0.0.1:4318\": needs a binary with traces in it, and this \
                   one was built without: cargo build --release --features otel";
        assert_eq!(refused, if cfg!(feature = "otel") { "" } else { why });
    }

    #[test]
    fn bounds_hold_for_settings_built_by_hand() {
        assert_eq!(
            refusal(|config| {
                config.batch.max = 0;
                config.sqlite.page_size_bytes = 4_000;
            }),
            "built-in: batch.max = 0: must be a whole number from 1 to 65536\n\
             built-in: sqlite.page_size_bytes = 4000: must be a power of two from 512 to 65536"
        );
        assert!(refusal(|config| config.mailbox.deadline_ms = u64::MAX).contains("are no TOML"));
        assert!(
            refusal(|config| config.auth.keys = vec![ApiKey { scopes: [].into(), ..key("a", "0") }])
                .contains("auth.keys[0].scopes = []: must be a list of at least one of read, write, admin")
        );
    }

    #[test]
    fn an_actor_never_holds_more_than_its_partition() {
        assert_eq!(refusal(|config| config.mailbox.actor_capacity = config.mailbox.capacity), "");
        assert_eq!(
            refusal(|config| config.mailbox.actor_capacity = 8_193),
            "built-in: mailbox.actor_capacity = 8193: must be at most mailbox.capacity = 8192 (built-in)"
        );
    }

    #[test]
    fn an_answer_never_holds_more_than_is_ranked() {
        assert_eq!(refusal(|config| config.likes.max_trending = 10_000), "");
        let more =
            |config: &mut Config| (config.likes.max_trending, config.rollup.trending_items) = (501, 500);
        assert_eq!(
            refusal(more),
            "built-in: rollup.trending_items = 500: must be at least likes.max_trending = 501 (built-in)"
        );
    }

    #[test]
    fn a_command_expires_before_its_request() {
        assert_eq!(refusal(|config| config.mailbox.deadline_ms = 9_999), "");
        assert_eq!(
            refusal(|config| config.mailbox.deadline_ms = 10_000),
            "built-in: mailbox.deadline_ms = 10000: must be below server.request_timeout_ms = 10000 (built-in)"
        );
    }

    #[test]
    fn other_machines_are_let_in_only_with_keys_or_on_purpose() {
        for address in ["0.0.0.0:1", "[::]:1", "192.168.0.7:1", "[::ffff:10.0.0.1]:1"] {
            for admin in [false, true] {
                let listen = |config: &mut Config| {
                    let server = &mut config.server;
                    *(if admin { &mut server.admin_listen } else { &mut server.listen }) =
                        address.parse().unwrap();
                };
                assert!(refusal(listen).contains("set auth.keys, or auth.open = true"), "{address}");
                assert_eq!(refusal(|config| (listen(config), config.auth.open = true).1), "");
                assert_eq!(refusal(|config| (listen(config), config.auth.keys = vec![key("a", "0")]).1), "");
            }
        }
        for address in ["127.0.0.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(refusal(|config| config.server.listen = address.parse().unwrap()), "");
        }
    }

    #[test]
    fn every_site_is_let_in_only_where_somebody_is_asked_or_on_purpose() {
        let any = |config: &mut Config| config.server.cors_origins = vec!["*".to_owned()];
        assert!(refusal(any).contains("server.cors_origins = [\"*\"]: lets the page of any site"));
        assert_eq!(refusal(|config| (any(config), config.auth.open = true).1), "");
        assert_eq!(refusal(|config| (any(config), config.auth.keys = vec![key("a", "0")]).1), "");
        assert_eq!(refusal(|config| (any(config), config.auth.token_secrets = vec![secret("a", 1)]).1), "");
        let one = |config: &mut Config| config.server.cors_origins = vec!["https://a.example".to_owned()];
        assert_eq!(refusal(one), "");
    }

    #[test]
    fn token_secrets_differ_and_close_a_service() {
        let two = |config: &mut Config, other| config.auth.token_secrets = vec![secret("a", 1), other];
        assert_eq!(refusal(|config| two(config, secret("b", 2))), "");
        let twins = refusal(|config| two(config, secret("a", 1)));
        assert_eq!(
            twins,
            "built-in: auth.token_secrets[1].name = \"a\": must differ from the name of auth.token_secrets[0]\n\
             built-in: auth.token_secrets[1].secret_base64 (value not shown): must differ from that of auth.token_secrets[0]"
        );
        let listen = |config: &mut Config| config.server.listen = "0.0.0.0:1".parse().unwrap();
        assert_eq!(refusal(|config| (listen(config), two(config, secret("b", 2))).1), "");
    }

    fn secret(name: &str, first: u8) -> TokenSecret {
        use base64::Engine as _;
        let bytes: Vec<u8> = (first..first + 32).collect();
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        TokenSecret { name: name.into(), secret_base64: text.parse().unwrap() }
    }

    #[test]
    fn keys_differ_in_name_and_digest() {
        assert_eq!(refusal(|config| config.auth.keys = vec![key("a", "0"), key("b", "1")]), "");
        assert_eq!(
            refusal(|config| config.auth.keys = vec![key("a", "0"), key("a", "1"), key("c", "0")]),
            "built-in: auth.keys[1].name = \"a\": must differ from the name of auth.keys[0]\n\
             built-in: auth.keys[2].sha256 (value not shown): must differ from the sha256 of auth.keys[0]"
        );
    }
}
