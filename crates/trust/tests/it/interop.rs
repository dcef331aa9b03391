//! Any other signer works: both ways with the `openssl` program.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use bastion_trust::{SignError, payload, sign};

use crate::support::{World, openssl_ok};

const CERT: &str = "../../owner.pem";

#[test]
fn openssl_signs_and_we_record() {
    let world = World::new();
    fs::write(world.path("payload"), payload(world.read().as_bytes()).unwrap()).unwrap();
    let Some(der) = openssl_ok(world.dir.path(), &["dgst", "-sha256", "-sign", "owner.key", "payload"], b"") else {
        return;
    };
    let value = base64::engine::general_purpose::STANDARD.encode(der);
    // as `base64` without -w0 prints it
    let wrapped: String =
        value.as_bytes().chunks(76).map(|line| format!("{}\n", std::str::from_utf8(line).unwrap())).collect();
    let signed = sign::record(&world.gate(), &world.manifest(), Path::new(CERT), &wrapped).unwrap();
    assert_eq!(signed.serial, Some(1), "what was signed elsewhere is not changed");
    assert_eq!(world.admitted().digest(), signed.digest);
}

#[test]
fn we_sign_and_openssl_verifies() {
    let world = World::new();
    world.sign();
    let text = world.read();
    let value = text.lines().find_map(|line| line.strip_prefix("  value: ")).unwrap();
    fs::write(world.path("sig"), base64::engine::general_purpose::STANDARD.decode(value).unwrap()).unwrap();
    let dir = world.dir.path();
    let Some(public) = openssl_ok(dir, &["x509", "-in", "owner.pem", "-noout", "-pubkey"], b"") else { return };
    fs::write(world.path("public"), public).unwrap();
    openssl_ok(dir, &["dgst", "-sha256", "-verify", "public", "-signature", "sig"], &payload(text.as_bytes()).unwrap());
}

#[test]
fn what_does_not_verify_is_not_recorded() {
    let world = World::new();
    world.sign();
    let text = world.read();
    let value = text.lines().find_map(|line| line.strip_prefix("  value: ")).unwrap().to_owned();
    let record = |value: &str| sign::record(&world.gate(), &world.manifest(), Path::new(CERT), value);
    record(&value).unwrap();
    assert_eq!(world.read(), text);
    world.write(&text.replace("[search]", "[read_range]"));
    let edited = world.read();
    for bad in [value.as_str(), "", "AAAA", "***", &format!("{value}AA")] {
        assert!(matches!(record(bad), Err(SignError::Value(_))), "{bad}");
        assert_eq!(world.read(), edited);
    }
}

#[test]
fn keys_of_every_form_sign() {
    let world = World::new();
    let dir = world.dir.path();
    if openssl_ok(dir, &["ec", "-in", "owner.key", "-out", "sec1.key"], b"").is_none() {
        return;
    }
    openssl_ok(dir, &["pkcs8", "-topk8", "-nocrypt", "-in", "owner.key", "-out", "pkcs8.key"], b"");
    // as `openssl ecparam -genkey` writes it: parameters first
    let params = openssl_ok(dir, &["ecparam", "-name", "prime256v1"], b"").unwrap();
    fs::write(world.path("both.key"), [params.as_slice(), &fs::read(world.path("sec1.key")).unwrap()].concat())
        .unwrap();
    assert!(fs::read_to_string(world.path("sec1.key")).unwrap().contains("BEGIN EC PRIVATE KEY"));
    for key in ["sec1.key", "pkcs8.key", "both.key"] {
        sign::sign(&world.gate(), &world.manifest(), Path::new(CERT), &world.path(key)).unwrap();
        world.admitted();
    }
    openssl_ok(dir, &["pkcs8", "-topk8", "-in", "owner.key", "-out", "locked.key", "-passout", "pass:x"], b"");
    openssl_ok(dir, &["ec", "-in", "owner.key", "-out", "locked1.key", "-aes128", "-passout", "pass:x"], b"");
    openssl_ok(dir, &["genpkey", "-algorithm", "ed25519", "-out", "ed.key"], b"");
    openssl_ok(dir, &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out", "p384.key"], b"");
    let before = world.read();
    for (key, words) in [
        ("locked.key", "encrypted"),
        ("locked1.key", "encrypted"),
        ("ed.key", "not a P-256"),
        ("p384.key", "not a P-256"),
        ("owner.pem", "no private key"),
    ] {
        let error = sign::sign(&world.gate(), &world.manifest(), Path::new(CERT), &world.path(key)).unwrap_err();
        assert!(error.to_string().contains(words), "{key}: {error}");
    }
    let other = crate::support::key();
    fs::write(world.path("other.key"), other.serialize_pem()).unwrap();
    let error = sign::sign(&world.gate(), &world.manifest(), Path::new(CERT), &world.path("other.key")).unwrap_err();
    assert!(matches!(error, SignError::KeyMismatch { .. }), "{error}");
    assert_eq!(world.read(), before);
}
