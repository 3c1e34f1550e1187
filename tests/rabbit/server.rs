//! A private RabbitMQ for the tests: own ports, own data, ended when dropped.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

pub struct Broker {
    child: Child,
    dir: PathBuf,
    port: u16,
}

static SHARED: Mutex<Weak<Broker>> = Mutex::new(Weak::new());

impl Broker {
    /// The one that tests share which do it no harm; each uses a prefix of its own. Ends with the last test using it.
    pub fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(broker) = shared.upgrade() {
            return broker;
        }
        let broker = Arc::new(Self::start());
        *shared = Arc::downgrade(&broker);
        broker
    }

    pub fn start() -> Self {
        let (port, dist) = (free_port(), free_port());
        let dir = std::env::temp_dir().join(format!("seckill-rabbit-{port}"));
        std::fs::create_dir_all(dir.join("log")).unwrap();
        std::fs::write(dir.join("rabbitmq.conf"), "loopback_users = none\n").unwrap();
        std::fs::write(dir.join("enabled_plugins"), "[].\n").unwrap();
        let node = format!("seckill{port}@localhost");
        let at = |name: &str| dir.join(name);
        let child = Command::new("/usr/lib/rabbitmq/bin/rabbitmq-server")
            .env("RABBITMQ_NODENAME", &node)
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", port.to_string())
            .env("RABBITMQ_DIST_PORT", dist.to_string())
            .env("RABBITMQ_MNESIA_BASE", at("mnesia"))
            .env("RABBITMQ_LOG_BASE", at("log"))
            .env("RABBITMQ_CONFIG_FILE", at("rabbitmq.conf"))
            .env("RABBITMQ_CONF_ENV_FILE", at("rabbitmq-env.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", at("enabled_plugins"))
            .env("RABBITMQ_GENERATED_CONFIG_DIR", at("generated"))
            .env("RABBITMQ_PID_FILE", at("pid"))
            .env("HOME", &dir)
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                format!("-sname {node} -start_epmd false -erl_epmd_port {dist}"),
            )
            .current_dir(&dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("rabbitmq-server is installed");
        let mut broker = Self { child, dir, port };
        broker.wait_ready();
        broker
    }

    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}", self.port)
    }

    /// SIGKILL, SIGSTOP or SIGCONT.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(done.is_ok_and(|status| status.success()));
    }

    fn wait_ready(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            assert!(matches!(self.child.try_wait(), Ok(None)), "rabbitmq-server ended at once");
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
                let mut byte = [0];
                if stream.write_all(b"AMQP\x00\x00\x09\x01").is_ok() && stream.read_exact(&mut byte).is_ok() {
                    return;
                }
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        panic!("rabbitmq-server was not ready within a minute; its log is in {}", self.dir.display());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Also ends a stopped one.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(std::fs::remove_dir_all(&self.dir));
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
