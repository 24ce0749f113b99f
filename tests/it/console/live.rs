//! The snapshots as they come, read as the page does.

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::service::Service;

const PATIENCE: Duration = Duration::from_secs(60);

/// An open stream.
pub struct Live {
    response: Response<Incoming>,
    text: String,
}

impl Live {
    pub async fn open(service: &Service, headers: &[(&str, &str)]) -> Self {
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
        let mut request = Request::get(format!("http://{}/console/live", service.admin_address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = client.request(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Self { response, text: String::new() }
    }

    /// The next snapshot.
    pub async fn next(&mut self) -> Value {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let data = block.lines().find_map(|line| line.strip_prefix("data:")).map(str::to_owned);
                self.text = rest.to_owned();
                if let Some(data) = data {
                    return serde_json::from_str(&data).unwrap();
                }
                continue;
            }
            let frame = tokio::time::timeout(PATIENCE, self.response.body_mut().frame()).await.unwrap();
            let frame = frame.expect("the stream ended").unwrap();
            self.text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
        }
    }

    /// Reads on until a snapshot is as wanted.
    pub async fn until(&mut self, what: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        for _ in 0..60 {
            let told = self.next().await;
            if wanted(&told) {
                return told;
            }
        }
        panic!("{what}: not in a minute");
    }
}
