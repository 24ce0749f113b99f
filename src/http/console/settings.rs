//! The configuration in force: every setting with its value, and whether that is what ships. No key's digest.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use toml::Value;

use crate::config::Config;
use crate::data_dir::Manifest;
use crate::http::App;
use crate::http::auth::{Permit, Read};

/// A setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Setting {
    key: String,
    value: String,
    /// Whether it is as it ships.
    is_default: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct SettingsAnswer {
    settings: Vec<Setting>,
}

pub(super) async fn show(_permit: Permit<Read>, State(app): State<App>) -> Json<SettingsAnswer> {
    Json(SettingsAnswer { settings: app.console.0.settings.clone() })
}

/// In the order of the sections, each by its keys.
pub(super) fn in_force(config: &Config, manifest: &Manifest) -> Vec<Setting> {
    let mut config = config.clone();
    // A key is its name and what it may do; who sees the page has no use for more.
    let keys = std::mem::take(&mut config.auth.keys);
    let silent = (config.likes.shards.is_none(), config.storage.partitions.is_none());
    config.likes.shards = Some(manifest.shards);
    config.storage.partitions = Some(manifest.partitions);
    let mut shipped = Config::default();
    shipped.likes.shards = silent.0.then_some(manifest.shards);
    shipped.storage.partitions = silent.1.then_some(manifest.partitions);
    let mut settings = Vec::new();
    if let (Ok(in_force), Ok(shipped)) = (Value::try_from(&config), Value::try_from(&shipped)) {
        flatten("", &in_force, Some(&shipped), &mut settings);
    }
    // `[faults]` is for tests, and shown where one is set.
    settings.retain(|setting| {
        setting.key != "auth.keys" && !(setting.is_default && setting.key.starts_with("faults."))
    });
    settings.extend(keys.iter().map(|key| {
        let scopes: Vec<String> =
            key.scopes.iter().map(|scope| format!("{scope:?}").to_ascii_lowercase()).collect();
        Setting { key: format!("auth.keys: {}", key.name), value: scopes.join(", "), is_default: false }
    }));
    settings
}

fn flatten(at: &str, value: &Value, shipped: Option<&Value>, settings: &mut Vec<Setting>) {
    let Value::Table(table) = value else {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        settings.push(Setting { key: at.to_owned(), value: text, is_default: shipped == Some(value) });
        return;
    };
    for (name, value) in table {
        let key = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        flatten(&key, value, shipped.and_then(|shipped| shipped.get(name)), settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        serde_json::from_value(serde_json::json!({
            "format": 1, "data_id": "1", "shards": 16, "partitions": 2, "hash": "xxh3_64", "complete": true
        }))
        .unwrap()
    }

    #[test]
    fn what_differs_from_what_ships_is_marked_and_no_digest_is_told() {
        let digest = "ab".repeat(32);
        let config: Config = toml::from_str(&format!(
            "[batch]\nmax = 7\n[[auth.keys]]\nname = 'ops'\nsha256 = '{digest}'\nscopes = ['read', 'admin']"
        ))
        .unwrap();
        let settings = in_force(&config, &manifest());
        let of = |key: &str| settings.iter().find(|setting| setting.key == key).unwrap();
        assert_eq!((&*of("batch.max").value, of("batch.max").is_default), ("7", false));
        assert!(of("batch.linger_us").is_default && of("server.listen").is_default);
        assert_eq!((&*of("likes.shards").value, of("likes.shards").is_default), ("16", true));
        assert_eq!((&*of("auth.keys: ops").value, of("auth.keys: ops").is_default), ("read, admin", false));
        assert!(!format!("{settings:?}").contains(&digest));
    }
}
