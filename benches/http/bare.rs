//! The bare axum program: what the framework alone does with the body and the answer of a like, and nothing between.

use std::net::Ipv4Addr;

use axum::extract::Path;
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LikeBody {
    user_id: String,
}

#[derive(Serialize)]
struct LikeAnswer {
    item: String,
    user: String,
    liked: bool,
    changed: bool,
    shard: u32,
}

/// Serves on `port` until the process ends, on the runtime that `#[tokio::main]` would build.
pub fn serve(port: u16) -> std::io::Result<()> {
    let app = Router::new().route("/likes/{item}", post(like));
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        axum::serve(listener, app).await
    })
}

async fn like(Path(item): Path<String>, Json(body): Json<LikeBody>) -> Json<LikeAnswer> {
    Json(LikeAnswer { item, user: body.user_id, liked: true, changed: true, shard: 0 })
}
