//! A link between a client and a server, under conditions: late, narrow, silent, cut, reset, or led to another server. One kind of
//! link serves all tests, those of `tests/chaos` too; it uses nothing of a system.

pub mod conditions;
pub mod link;
mod pump;

/// The port in an address like `amqp://guest:guest@127.0.0.1:port/vhost`.
pub fn port_of(url: &str) -> u16 {
    let port = url.rsplit_once(':').expect("a port").1;
    port.split('/').next().expect("a port").parse().expect("a port")
}

/// The same address with another port: a way through something that stands before the server.
pub fn through(direct: &str, port: u16) -> String {
    direct.replace(&format!(":{}", port_of(direct)), &format!(":{port}"))
}
