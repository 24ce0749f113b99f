//! What to tell whoever asks where nothing is: where it is instead, and which methods a path knows.

use std::collections::BTreeMap;

use axum::http::{StatusCode, Uri};
use utoipa::openapi::{OpenApi, PathItem};

use super::problem::Problem;

/// The methods of each path, as a text for people.
pub(super) type Methods = BTreeMap<String, String>;

/// Those that the document has.
pub(super) fn methods(document: &OpenApi) -> Methods {
    let of_path = |(path, item): (&String, &PathItem)| {
        let methods =
            [("GET", &item.get), ("PUT", &item.put), ("POST", &item.post), ("DELETE", &item.delete)];
        let methods = methods.iter().filter(|(_, operation)| operation.is_some());
        (path.clone(), methods.map(|(method, _)| *method).collect::<Vec<_>>().join(", "))
    };
    document.paths.paths.iter().map(of_path).collect()
}

/// Of the public listener, with a word on what is often looked for there.
pub(super) async fn no_such_path(uri: Uri) -> Problem {
    let elsewhere = match uri.path() {
        "/" => {
            "this is headcount: the API is at /openapi.json, the operator's page at / of the admin listener"
        }
        "/metrics" | "/usage" | "/backup" | "/verify" | "/console" => {
            "no such path here: it is on the admin listener, server.admin_listen"
        }
        "/demo" => "no such path; `server.demo = true` serves it",
        _ => return Problem::not_found(),
    };
    Problem::new(StatusCode::NOT_FOUND, "not_found", elsewhere)
}
