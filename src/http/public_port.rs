//! A port that is bound at the start and opened when it is served.
//!
//! Input: an address, the length of the accept queue. Output: a listener. Bound, the port is known and no second process gets
//! it; connections are refused, so that a balancer sends buyers elsewhere and no request waits in a socket that is not read.

use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, TcpListener};

/// The bound of the system on every accept queue.
const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";

/// A port that is bound, but not open.
#[derive(Debug)]
pub struct BoundPort(Socket);

impl BoundPort {
    /// Binds `address`. Port 0 picks a free one.
    pub(crate) fn new(address: &str) -> Result<Self> {
        let address: SocketAddr = address.parse().map_err(|error| Error::new(ErrorKind::InvalidInput, error))?;
        // Two sockets that both share their address could both be bound until one of them is open. Shared only when it has to
        // be: connections of a process that ended hold the port for a minute.
        Self::bound(address, false).or_else(|_| Self::bound(address, true)).map(Self)
    }

    fn bound(address: SocketAddr, shared: bool) -> Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(shared)?;
        socket.bind(&SockAddr::from(address))?;
        Ok(socket)
    }

    /// The address, with the port that was picked.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        self.0.local_addr()?.as_socket().ok_or_else(|| ErrorKind::Unsupported.into())
    }

    /// Lets connections come; `backlog` of them wait to be accepted, or as many as the system allows.
    pub(crate) fn open(self, backlog: u16) -> Result<TcpListener> {
        // Its connections inherit it, and then do not keep the next process from the port.
        self.0.set_reuse_address(true)?;
        self.0.listen(i32::from(backlog))?;
        Ok(self.0.into())
    }
}

/// Longest accept queue that the system allows; none where it does not say.
pub(crate) fn accept_queue_max() -> Option<u32> {
    std::fs::read_to_string(SOMAXCONN).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::time::Duration;

    #[test]
    fn a_bound_port_is_taken_and_refuses_connections_until_it_is_open() {
        let port = BoundPort::new("127.0.0.1:0").unwrap();
        let address = port.address().unwrap();
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let second = || BoundPort::new(&address.to_string()).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(second(), Err(ErrorKind::AddrInUse), "while it is bound");
        let listener = port.open(128).unwrap();
        assert_eq!(second(), Err(ErrorKind::AddrInUse), "while it is open");
        let client = TcpStream::connect(address).unwrap();
        drop(listener.accept().unwrap());
        drop((listener, client));
        assert_eq!(second(), Ok(()), "connections that ended do not hold it");
    }

    #[test]
    fn as_many_connections_as_configured_wait_to_be_accepted() {
        let port = BoundPort::new("127.0.0.1:0").unwrap();
        let address = port.address().unwrap();
        let _never_accepts = port.open(400).unwrap();
        let wanted = accept_queue_max().unwrap_or(400).min(400);
        let wait = Duration::from_millis(500);
        let waiting: Vec<_> = (0..wanted).map_while(|_| TcpStream::connect_timeout(&address, wait).ok()).collect();
        assert_eq!(waiting.len(), wanted as usize);
    }
}
