//! All three servers over TLS, their plain ports off (A11): a whole sale, and every mistake reported as what it is.

use crate::support::outside::certificates::{Certificates, NAME};
use crate::support::processes::programs::call;
use crate::support::world::{World, run_waiting};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, SslOpts};
use seckill::dev::ServerUrls;
use seckill::roles::Role;
use serde_json::Value;

/// Makes an account of the database that has to show a certificate.
async fn account_with_certificate(certificates: &Certificates, url: &str) {
    let trust = SslOpts::default().with_root_certs(vec![certificates.file("ca.pem").into()]);
    let options = Opts::from_url(&url.replacen("mysqls", "mysql", 1)).expect("a url");
    let mut root = Conn::new(OptsBuilder::from_opts(options).ssl_opts(trust)).await.expect("encrypted");
    root.query_drop("CREATE USER seller@'%' IDENTIFIED BY 'pw' REQUIRE X509").await.expect("made");
    root.query_drop("GRANT ALL ON seckill.* TO seller@'%'").await.expect("granted");
    root.disconnect().await.expect("closed");
}

/// Runs the doctor; exit code, and the error of each server, empty when it answers.
fn doctor(urls: &ServerUrls, set: &[String]) -> (Option<i32>, [String; 3]) {
    let own = [
        format!("redis.url={}", urls.redis_url),
        format!("rabbitmq.url={}", urls.amqp_url),
        format!("mysql.url={}", urls.mysql_url),
    ];
    let mut args = vec!["--data-dir", "/nonexistent"];
    for set in own.iter().chain(set) {
        args.extend(["--set", set.as_str()]);
    }
    args.extend(["doctor", "--json"]);
    let (code, out, err) = call(&args);
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    let why = |server: &str| {
        let lines = answer["checks"].as_array().expect("checks").iter();
        let away: Vec<&str> = lines
            .filter(|line| line["server"] == server && line["verdict"] == "away")
            .map(|line| line["why"].as_str().expect("why"))
            .collect();
        away.join("; ")
    };
    (code, [why("redis"), why("rabbitmq"), why("mysql")])
}

/// Fails unless each of the servers is away for a reason with one of these words in it.
fn all_say((code, why): (Option<i32>, [String; 3]), words: &[&str]) {
    assert_eq!(code, Some(1), "{why:?}");
    for said in why {
        assert!(words.iter().any(|word| said.contains(word)), "{words:?} in {said:?}");
        assert!(!said.contains("guest:guest") && !said.contains("pw@"), "{said}");
    }
}

#[test]
fn a_sale_goes_through_encrypted_servers_and_mistakes_are_reported() {
    run_waiting(async {
        let certificates = Certificates::new("tls");
        let servers = certificates.servers().await;
        let mut urls = servers.urls();
        assert!(urls.redis_url.starts_with("rediss://") && urls.amqp_url.starts_with("amqps://"), "{urls:?}");
        account_with_certificate(&certificates, &urls.mysql_url).await;
        urls.mysql_url = urls.mysql_url.replace("root@", "seller:pw@");

        let sets = certificates.sets();
        // By way of the broker, or not at all.
        let set: Vec<&str> = sets.iter().map(String::as_str).chain(["p5_reconcile.compensate=manual"]).collect();
        let places = (urls.redis_url.as_str(), urls.amqp_url.as_str(), urls.mysql_url.as_str());
        let world = World::on(places, "tls", &Role::ALL, &set).await;
        let sale = world.sale("encrypted", 3, Some(1)).await;
        for buyer in ["ann", "bob", "cid"] {
            let answer = world.buy(&sale, buyer, 1, None).await;
            assert_eq!(answer.status, 202, "{answer:?}");
            let status = world.status(&sale, buyer, &answer.text("request_id"), 30).await;
            assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 3);
        world.finish().await;

        assert_eq!(doctor(&urls, &sets).1, ["", "", ""]);
        let all = |key: &str, value: &str| -> Vec<String> {
            let other = ["redis", "rabbitmq", "mysql"].map(|section| format!("{section}.{key}={value}"));
            sets.iter().cloned().chain(other).collect()
        };
        all_say(doctor(&urls, &all("tls_ca_file", &certificates.path("stranger.pem"))), &["name the file of the CA"]);
        all_say(doctor(&urls, &all("tls_ca_file", "")), &["name the file of the CA", "has no CA certificates"]);
        // The certificate is for localhost.
        let by_number = |url: &str| url.replace(NAME, "127.0.0.1");
        let numbers = ServerUrls {
            redis_url: by_number(&urls.redis_url),
            amqp_url: by_number(&urls.amqp_url),
            mysql_url: by_number(&urls.mysql_url),
        };
        all_say(doctor(&numbers, &sets), &["certificate for another name"]);
        let plain = |url: &str| url.replacen("s://", "://", 1);
        let plain = ServerUrls {
            redis_url: plain(&urls.redis_url),
            amqp_url: plain(&urls.amqp_url),
            // An account that needs a certificate is refused, before anything else.
            mysql_url: plain(&urls.mysql_url).replace("seller:pw@", "root@"),
        };
        all_say(doctor(&plain, &[]), &["if it takes TLS only", "the server wants TLS"]);
        servers.stop().await.expect("stopped");
    });
}
