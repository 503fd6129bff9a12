//! The socket of a server, and in plain words why there is none.

use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

use super::registry::Running;

/// A bound socket.
#[derive(Debug)]
pub(crate) enum Socket {
    /// TCP.
    Tcp(TcpListener),
    /// A unix socket, removed when dropped.
    Unix(UnixListener, RemovedOnDrop),
}

/// A path that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct RemovedOnDrop(PathBuf);

impl Drop for RemovedOnDrop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Socket {
    /// Opens the socket that `host` and `port` name; `others` are the servers that run already.
    ///
    /// # Errors
    /// In use (and by whom, where that is known), not permitted, no such address.
    pub(crate) fn open(host: &str, port: u16, others: &[Running]) -> anyhow::Result<Socket> {
        if host.ends_with(".sock") || host.contains('/') {
            return open_unix(Path::new(host));
        }
        let addresses: Vec<_> = (host, port)
            .to_socket_addrs()
            .with_context(|| format!("--host {host}: not an address of this machine"))?
            .collect();
        let listener = TcpListener::bind(addresses.as_slice())
            .map_err(|error| explain(host, port, others, &error))?;
        listener.set_nonblocking(true)?;
        Ok(Socket::Tcp(listener))
    }

    /// The address for clients on this machine.
    pub(crate) fn address(&self) -> anyhow::Result<String> {
        match self {
            Socket::Tcp(listener) => {
                let mut address = listener.local_addr()?;
                if address.ip().is_unspecified() {
                    address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
                }
                Ok(format!("http://{address}"))
            }
            Socket::Unix(_, path) => Ok(format!("unix:{}", path.0.display())),
        }
    }

    /// Whether other machines can reach it.
    pub(crate) fn is_public(&self) -> bool {
        match self {
            Socket::Tcp(listener) => listener
                .local_addr()
                .is_ok_and(|address| !address.ip().is_loopback()),
            Socket::Unix(..) => false,
        }
    }
}

fn open_unix(path: &Path) -> anyhow::Result<Socket> {
    if path.exists() {
        if UnixStream::connect(path).is_ok() {
            bail!("{} is in use: another server listens there", path.display());
        }
        let is_socket = {
            use std::os::unix::fs::FileTypeExt;
            std::fs::symlink_metadata(path)?.file_type().is_socket()
        };
        anyhow::ensure!(
            is_socket,
            "{} is there already and is no socket",
            path.display()
        );
        std::fs::remove_file(path)
            .with_context(|| format!("cannot replace the dead socket {}", path.display()))?;
    }
    let listener =
        UnixListener::bind(path).with_context(|| format!("cannot listen at {}", path.display()))?;
    listener.set_nonblocking(true)?;
    Ok(Socket::Unix(listener, RemovedOnDrop(path.to_owned())))
}

fn explain(host: &str, port: u16, others: &[Running], error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let ending = format!(":{port}");
            let holder = match others.iter().find(|other| other.address.ends_with(&ending)) {
                Some(other) => format!(
                    "a dynalm server with {} holds it (process {}; dynalm stop {port} ends it)",
                    other.model, other.pid
                ),
                None => format!("another program holds it (ss -ltnp 'sport = :{port}' names it)"),
            };
            anyhow!("port {port} is in use: {holder}; --port takes another, --port 0 any free one")
        }
        io::ErrorKind::PermissionDenied => {
            anyhow!(
                "no permission to listen on port {port}: ports below 1024 are the system's; --port takes another"
            )
        }
        io::ErrorKind::AddrNotAvailable => anyhow!("--host {host}: not an address of this machine"),
        _ => anyhow!("cannot listen on {host} port {port}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_names_its_holder() {
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = holder.local_addr().unwrap().port();
        let error = Socket::open("127.0.0.1", port, &[])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("port {port} is in use: another program")),
            "{error}"
        );
        let other = Running {
            pid: 9,
            address: format!("http://127.0.0.1:{port}"),
            model: "m".to_owned(),
            started: 0,
        };
        let error = Socket::open("127.0.0.1", port, &[other])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a dynalm server with m holds it (process 9"),
            "{error}"
        );
    }

    #[test]
    fn dead_sockets_are_replaced_and_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        drop(UnixListener::bind(&path).unwrap());
        let socket = Socket::open(path.to_str().unwrap(), 0, &[]).unwrap();
        assert!(!socket.is_public());
        assert!(
            Socket::open(path.to_str().unwrap(), 0, &[])
                .unwrap_err()
                .to_string()
                .contains("in use")
        );
        drop(socket);
        assert!(!path.exists());
        std::fs::write(&path, "x").unwrap();
        assert!(Socket::open(path.to_str().unwrap(), 0, &[]).is_err());
    }
}
