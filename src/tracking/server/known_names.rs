//! The addresses of names. Each name is looked up once, so that a server is asked at the addresses that
//! were checked: the owner of a name could answer with others the next time.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::networks::is_public;

/// The names that were looked up, with their addresses.
#[derive(Clone)]
pub(super) struct KnownNames {
    /// Asks the name servers of this system; `None` if there are none.
    resolver: Option<TokioResolver>,
    addresses: Arc<Mutex<HashMap<String, Vec<IpAddr>>>>,
}

impl KnownNames {
    /// Creates an empty list.
    pub(super) fn new() -> KnownNames {
        let resolver = TokioResolver::builder_tokio().ok().and_then(|mut builder| {
            builder.options_mut().ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
            builder.build().ok()
        });
        KnownNames {
            resolver,
            addresses: Arc::default(),
        }
    }

    /// Returns true if all addresses of the host of `url` are public, and false if one is in a private
    /// network or of this machine; `None` if its name has no address.
    pub(super) async fn is_public(&self, url: &Url) -> Option<bool> {
        let host = url.host_str()?;
        let number = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = number.parse() {
            return Some(is_public(address));
        }
        let found = self.look_up(host).await.ok()?;
        (!found.is_empty()).then(|| found.into_iter().all(is_public))
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>> {
        if let Some(found) = self.known().get(name) {
            return Ok(found.clone());
        }
        let resolver = self.resolver.as_ref().context("there is no name server")?;
        let found = resolver.lookup_ip(name).await?;
        let mut known = self.known();
        // Of two lookups at once, the first counts.
        let addresses = known.entry(name.to_owned());
        Ok(addresses.or_insert_with(|| found.iter().collect()).clone())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Vec<IpAddr>>> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Resolve for KnownNames {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let found = names.look_up(name.as_str()).await?;
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}
