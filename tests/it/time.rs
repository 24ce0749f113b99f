//! Time that passes without anybody waiting for it.

use std::time::Duration;

use crate::client::Client;
use crate::files;
use crate::service::{Service, Setup};

/// Stops a service, lets time pass, and starts it again: its clock goes on from the mark that its data holds.
pub fn passes(setup: &Setup, service: Service, passed_ms: i64) -> Service {
    assert!(service.stop().success());
    forward(setup, passed_ms);
    setup.clone().with("clock.allow_step_back", true).start()
}

/// The same while it is dead.
pub fn forward(setup: &Setup, passed_ms: i64) {
    let now_ms = wall_ms();
    for file in files::partitions(&setup.data_dir()) {
        let sql = format!("UPDATE identity SET clock_mark_ms = max(clock_mark_ms, {now_ms}) + {passed_ms}");
        files::execute(&setup.data_dir(), &file, &sql);
    }
}

/// The time here, which a service's goes beside.
pub fn wall_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// The service's time.
pub async fn now_ms(client: &Client) -> i64 {
    client.get("/likes/clock?exact=true").await.json["asOf"].as_i64().unwrap()
}

/// Waits until the service's time has come to this.
pub async fn comes(client: &Client, at_ms: i64) {
    while now_ms(client).await < at_ms {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
