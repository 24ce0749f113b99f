use serde_json::{Value, json};

use super::*;

const NOW_S: i64 = 1_800_000_000;

fn secret(digit: u8) -> String {
    let bytes: Vec<u8> = (0..32).map(|at| at ^ digit).collect();
    URL_SAFE_NO_PAD.encode(bytes)
}

fn tokens(names: &[(&str, u8)]) -> Tokens {
    let token_secrets = names
        .iter()
        .map(|(name, digit)| crate::config::TokenSecret {
            name: (*name).to_owned(),
            secret_base64: secret(*digit).parse().unwrap(),
        })
        .collect();
    (&Auth { token_secrets, token_max_ttl_s: 600, ..Auth::default() }).into()
}

fn sign_parts(header: &str, claims: &str, digit: u8) -> String {
    let secret: crate::config::SharedSecret = secret(digit).parse().unwrap();
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap().chain_update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

fn sign(claims: &Value) -> String {
    sign_parts(r#"{"alg":"HS256","typ":"JWT"}"#, &claims.to_string(), 1)
}

fn believe(token: &str) -> Result<Claims, Wrong> {
    let is_user = |name: &str| crate::names::is_free_name(name, 128);
    tokens(&[("one", 1)]).believe(token, NOW_S * 1_000, is_user).map(|(claims, _)| claims)
}

fn with(change: Value) -> Result<Claims, Wrong> {
    let mut claims = json!({"sub": "ada", "exp": NOW_S + 60});
    claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    believe(&sign(&claims))
}

#[test]
fn a_token_says_who_and_until_when() {
    let claims = with(json!({"iat": NOW_S, "iss": "site", "jti": null})).unwrap();
    assert_eq!((claims.sub.as_str(), claims.ends_at_ms), ("ada", (NOW_S + 65) * 1_000));
    assert_eq!((claims.scope, claims.items, claims.rooms, claims.workshops), (None, None, None, None));
    assert_eq!(with(json!({"exp": NOW_S as f64 + 59.5})).unwrap().ends_at_ms, NOW_S * 1_000 + 64_500);
}

/// A signer who misspells what narrows a token has not narrowed it, and should hear of it.
#[test]
fn an_unknown_claim_is_named() {
    for claim in ["itmes", "items", "Item", "scp", "scopes", "name", "email", "", "sub "] {
        assert_eq!(with(json!({claim: ["a"]})), Err(Wrong::Claims(claim.to_owned())));
        assert_eq!(
            with(json!({claim: null, "exp": 0})),
            Err(Wrong::Claims(claim.to_owned())),
            "first of all"
        );
    }
    assert_eq!(with(json!({"b": 1, "a": {"sub": "eve"}})), Err(Wrong::Claims("a".to_owned())));
}

/// RFC 7515, appendix A.1: the header, the claims and the signature that every library makes of them.
#[test]
fn the_signature_is_the_one_of_the_standard() {
    let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
    let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9\
                 .eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ\
                 .dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let secret = crate::config::TokenSecret { name: "rfc".into(), secret_base64: key.parse().unwrap() };
    let tokens: Tokens = (&Auth { token_secrets: vec![secret], ..Auth::default() }).into();
    assert!(tokens.signed(token).is_some());
    assert!(matches!(tokens.believe(token, 0, |_| true), Err(Wrong::Says(_))), "it has no `sub`");
}

#[test]
fn times_have_both_bounds() {
    assert!(with(json!({"exp": NOW_S - 4})).is_ok(), "clocks differ");
    assert_eq!(with(json!({"exp": NOW_S - 5})), Err(Wrong::Expired));
    assert_eq!(with(json!({"exp": 0})), Err(Wrong::Expired));
    assert!(with(json!({"exp": NOW_S + 605})).is_ok());
    for bad in [
        json!({"exp": NOW_S + 606}),
        json!({"exp": 1e300}),
        json!({"exp": (NOW_S + 60).to_string()}),
        json!({"exp": null}),
        json!({"nbf": NOW_S + 6}),
        json!({"nbf": null}),
        json!({"nbf": "soon"}),
    ] {
        assert!(matches!(with(bad.clone()), Err(Wrong::Says(_))), "{bad}");
    }
    assert!(with(json!({"nbf": NOW_S + 5})).is_ok() && with(json!({"nbf": 0})).is_ok());
    let endless = json!({"sub": "ada"});
    assert!(matches!(believe(&sign(&endless)), Err(Wrong::Says(_))), "`exp` is required");
}

#[test]
fn who_it_is_for_and_what_for() {
    for good in [json!("headcount"), json!(["a", "headcount"])] {
        assert!(with(json!({"aud": good})).is_ok());
    }
    for bad in [json!("other"), json!([]), json!(null), json!(1), json!(["Headcount"])] {
        assert!(matches!(with(json!({"aud": bad})), Err(Wrong::Says(_))), "{bad}");
    }
    let scope = |scope: Value| with(json!({"scope": scope})).map(|claims| claims.scope.unwrap());
    let both = vec![TokenScope::Likes, TokenScope::Read];
    assert_eq!((scope(json!(["likes", "read"])), scope(json!("likes read"))), (Ok(both.clone()), Ok(both)));
    assert_eq!((scope(json!([])), scope(json!(""))), (Ok(vec![]), Ok(vec![])), "for nothing");
    for bad in [json!("admin"), json!(["likes", "write"]), json!(null), json!({}), json!([1])] {
        assert!(matches!(scope(bad.clone()), Err(Wrong::Says(_))), "{bad}");
    }
    let claims = with(json!({"item": "a", "room": ["x", "y"], "workshop": []})).unwrap();
    assert_eq!(claims.items, Some(vec!["a".to_owned()]));
    assert_eq!(claims.rooms, Some(vec!["x".to_owned(), "y".to_owned()]));
    assert_eq!(claims.workshops, Some(vec![]), "of no workshop");
    for narrows in ["item", "room", "workshop"] {
        for bad in [json!(null), json!(7), json!({}), json!([null]), json!(vec!["a"; 101])] {
            assert!(matches!(with(json!({narrows: bad})), Err(Wrong::Says(_))), "{narrows} {bad}");
        }
    }
    for bad in [json!(""), json!("."), json!("a\nb"), json!("a".repeat(129)), json!(7), json!(null)] {
        assert!(matches!(with(json!({"sub": bad})), Err(Wrong::Says(_))), "{bad}");
    }
}

#[test]
fn nothing_but_a_known_secret_signs() {
    let claims = json!({"sub": "ada", "exp": NOW_S + 60}).to_string();
    let good = sign_parts(r#"{"alg":"HS256"}"#, &claims, 1);
    assert!(believe(&good).is_ok());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let other_claims = URL_SAFE_NO_PAD.encode(json!({"sub": "eve", "exp": NOW_S + 60}).to_string());
    let header = signed.split_once('.').unwrap().0;
    for bad in [
        sign_parts(r#"{"alg":"HS256"}"#, &claims, 2),
        sign_parts(r#"{"alg":"none"}"#, &claims, 1),
        sign_parts(r#"{"alg":"None"}"#, &claims, 1),
        sign_parts(r#"{"alg":"HS512"}"#, &claims, 1),
        sign_parts(r#"{"alg":"RS256"}"#, &claims, 1),
        sign_parts(r#"{"alg":"hs256"}"#, &claims, 1),
        sign_parts(r#"{"alg":["HS256"]}"#, &claims, 1),
        sign_parts(r#"{"alg":"none","alg":"HS256"}"#, &claims, 1),
        sign_parts(r#"{"alg":"HS256","crit":["exp"]}"#, &claims, 1),
        sign_parts(r#"{"alg":"HS256","typ":"dpop+jwt"}"#, &claims, 1),
        sign_parts(r#"{"alg":"HS256","kid":"two"}"#, &claims, 1),
        sign_parts(r#"{"alg":"HS256","kid":null}"#, &claims, 1),
        sign_parts(r#"{"alg":"HS256","kid":"../one"}"#, &claims, 1),
        sign_parts(r#"["HS256",null,null,null]"#, &claims, 1),
        sign_parts("", &claims, 1),
        format!("{signed}."),
        signed.to_owned(),
        format!("{signed}.{}", &signature[1..]),
        format!("{signed}.{signature}A"),
        format!("{signed}.{signature}="),
        format!("{signed}.{signature}.{signature}"),
        format!("{header}.{other_claims}.{signature}"),
        format!("{good} "),
        String::new(),
        "..".to_owned(),
        "a".repeat(100_000),
    ] {
        assert_eq!(believe(&bad), Err(Wrong::NotOurs), "{bad}");
    }
    let array = sign_parts(r#"{"alg":"HS256"}"#, r#"["ada",1800000060]"#, 1);
    assert!(matches!(believe(&array), Err(Wrong::Says(_))));
    let twice = sign_parts(r#"{"alg":"HS256"}"#, r#"{"sub":"ada","exp":1800000060,"sub":"eve"}"#, 1);
    assert!(matches!(believe(&twice), Err(Wrong::Says(_))), "which of the two?");
}

#[test]
fn secrets_follow_each_other() {
    let claims = json!({"sub": "ada", "exp": NOW_S + 60}).to_string();
    let both = tokens(&[("old", 1), ("new", 2)]);
    let signer = |header: &str, digit| {
        let token = sign_parts(header, &claims, digit);
        both.believe(&token, NOW_S * 1_000, |_| true).map(|(_, secret)| secret)
    };
    assert_eq!(signer(r#"{"alg":"HS256"}"#, 1), Ok("old"));
    assert_eq!(signer(r#"{"alg":"HS256"}"#, 2), Ok("new"));
    assert_eq!(signer(r#"{"alg":"HS256","kid":"new"}"#, 2), Ok("new"));
    assert_eq!(signer(r#"{"alg":"HS256","kid":"old"}"#, 2), Err(Wrong::NotOurs));
    assert!(!format!("{both:?}").contains(&secret(1)));
}
