//! Which tokens are believed. The rules one by one are unit tests beside the code; here they hold over HTTP, and nothing
//! that is secret gets out.

use super::*;

fn ask(service: &Service, token: &str) -> Answer {
    send(&service.public, &bearer(token), "PUT", "/likes/a/users/ada", "")
}

#[test]
fn a_signed_token_likes_and_others_are_told_why_not() {
    let service = start();
    assert_eq!(ask(&service, &token("ada")).status, 200);
    let at = now_s();
    let alg = |alg: &str| sign_as(&json!({"alg": alg}), &json!({"sub": "ada", "exp": at + 60}), 1);
    let unsigned = alg("none").rsplit_once('.').unwrap().0.to_owned() + ".";
    for (bad, word) in [
        (sign(&json!({"sub": "ada", "exp": at - 60})), "token_expired"),
        (sign(&json!({"sub": "ada", "exp": at + 3_600 + 60})), "invalid_token"),
        (sign(&json!({"sub": "ada"})), "invalid_token"),
        (sign(&json!({"exp": at + 60})), "invalid_token"),
        (token_with("ada", json!({"nbf": at + 60})), "invalid_token"),
        (token_with("ada", json!({"aud": "somebody else"})), "invalid_token"),
        (token_with("ada", json!({"scope": ["admin"]})), "invalid_token"),
        (sign_as(&json!({"alg": "HS256"}), &json!({"sub": "ada", "exp": at + 60}), 2), "invalid_token"),
        (alg("none"), "invalid_token"),
        (unsigned, "invalid_token"),
        (alg("HS384"), "invalid_token"),
        (alg("RS256"), "invalid_token"),
        ("a.b.c".to_owned(), "invalid_token"),
        ("..".to_owned(), "invalid_token"),
        // No token at all: an unknown key.
        ("hc_unknown".to_owned(), "unauthorized"),
        (String::new(), "unauthorized"),
    ] {
        let answer = ask(&service, &bad);
        assert_eq!((answer.status, answer.error()), (401, word), "{bad}: {answer:?}");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        assert!(bad.len() < 9 || !answer.text.contains(&bad), "an answer repeats a token");
    }
    assert_eq!(ask(&service, KEY).status, 200, "a key is one as before");
}

#[test]
fn a_misspelt_claim_is_refused_and_named() {
    let service = start();
    let answer = ask(&service, &token_with("ada", json!({"itmes": ["a"]})));
    assert_eq!((answer.status, answer.error()), (401, "invalid_token"));
    assert!(answer.json["detail"].as_str().unwrap().contains("`itmes`"), "{answer:?}");
    let registered = json!({"iss": "https://www.example.com", "iat": now_s(), "jti": "1", "nbf": now_s(), "aud": "headcount"});
    assert_eq!(ask(&service, &token_with("ada", registered)).status, 200);
}

#[test]
fn a_secret_follows_another() {
    let claims = json!({"sub": "ada", "exp": now_s() + 60});
    let signed = |kid: &str, which| sign_as(&json!({"alg": "HS256", "kid": kid}), &claims, which);
    let both = setup(&[("2025", 1), ("2026", 2)]).start();
    for (kid, which, status) in [("2025", 1, 200), ("2026", 2, 200), ("2025", 2, 401), ("2027", 1, 401)] {
        assert_eq!(ask(&both, &signed(kid, which)).status, status, "{kid} {which}");
    }
    assert_eq!(ask(&both, &sign_as(&json!({"alg": "HS256"}), &claims, 2)).status, 200, "no kid: whichever");
    let new = setup(&[("2026", 2)]).start();
    assert_eq!((ask(&new, &signed("2025", 1)).status, ask(&new, &signed("2026", 2)).status), (401, 200));
}

#[test]
fn how_long_is_too_long_is_a_setting() {
    let service = setup(&[("site", 1)]).with("auth.token_max_ttl_s", 60).start();
    let until = |exp| ask(&service, &sign(&json!({"sub": "ada", "exp": exp}))).status;
    assert_eq!((until(now_s() + 50), until(now_s() + 120)), (200, 401));
}

#[test]
fn secrets_and_tokens_stay_out_of_the_log() {
    let setup = setup(&[("site", 1)]).with("log.level", "trace").with("log.decisions", true);
    let service = setup.start();
    let good = token("ada");
    let bad = sign_as(&json!({"alg": "HS256"}), &json!({"sub": "ada", "exp": now_s() + 60}), 9);
    for token in [&good, &bad] {
        ask(&service, token);
        send(&service.public, &bearer(token), "DELETE", "/likes/a", "");
        open(&service.public, "", &format!("/likes/a/events?access_token={token}"));
        open(&service.public, UPGRADE, &format!("/rooms/r/socket?access_token={token}"));
    }
    let log = service.log().join("\n");
    let encoded = STANDARD.encode(secret(1));
    for secret in [good.as_str(), bad.as_str(), &encoded, encoded.trim_end_matches('=')] {
        assert!(!log.contains(secret), "the log tells {secret}");
    }
    assert!(!log.contains("access_token"), "{log}");

    // What is wrong with a secret is told without it.
    let bad = setup.with("auth.token_secrets", "[{ name = 'a', secret_base64 = 'c2hvcnQgc2VjcmV0' }]");
    let refused = bad.try_start().err().expect("nine bytes are no secret");
    assert!(refused.contains("auth.token_secrets[0].secret_base64 (value not shown)"), "{refused}");
    assert!(!refused.contains("c2hvcnQ"), "{refused}");
    let output = bad.run(&["check-config"]);
    assert!(!output.status.success());
    assert!(!String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).contains("c2hvcnQ"));
}

/// Secrets alone close a service: nobody comes in without a token, and no key is known.
#[test]
fn with_secrets_alone_only_end_users_come_in() {
    let service = setup(&[("site", 1)]).with("auth.keys", "[]").start();
    assert_eq!(ask(&service, &token("ada")).status, 200);
    assert_eq!(send(&service.public, "", "PUT", "/likes/a/users/ada", "").status, 401);
    assert_eq!(send(&service.admin_address, &bearer(&token("ada")), "GET", "/metrics", "").status, 403);
}
