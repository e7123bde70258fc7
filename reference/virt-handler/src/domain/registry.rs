//! The machines of this node that can be called right now: how the HTTPS server finds a launcher.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::api::core::v1::ObjectReference;
use tokio_util::sync::CancellationToken;
use virt_cmd::{client::Client, paths::LauncherPaths};

/// A machine whose launcher is known.
#[derive(Clone, Debug)]
pub struct RunningMachine {
    /// The VMI.
    pub vmi: ObjectReference,
    /// Its launcher.
    pub client: Client,
    /// Its launcher's sockets.
    pub paths: LauncherPaths,
    console: Arc<Mutex<CancellationToken>>,
}

impl RunningMachine {
    /// A machine without console sessions.
    #[must_use]
    pub fn new(vmi: ObjectReference, client: Client, paths: LauncherPaths) -> Self {
        Self {
            vmi,
            client,
            paths,
            console: Arc::default(),
        }
    }

    /// Takes over the console: the session before this one is told to end, and the next one ends this one.
    #[must_use]
    pub fn take_console(&self) -> CancellationToken {
        let mine = CancellationToken::new();
        let mut current = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, mine.clone()).cancel();
        mine
    }
}

type Name = (String, String);

/// All machines by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    machines: Arc<Mutex<HashMap<Name, RunningMachine>>>,
}

impl Registry {
    /// The machine of that VMI.
    #[must_use]
    pub fn find(&self, namespace: &str, name: &str) -> Option<RunningMachine> {
        let key = (namespace.to_owned(), name.to_owned());
        self.lock().get(&key).cloned()
    }

    /// Lists a machine until the answer is dropped.
    #[must_use]
    pub fn list(&self, machine: RunningMachine) -> Listed {
        let of = |text: &Option<String>| text.clone().unwrap_or_default();
        let key = (of(&machine.vmi.namespace), of(&machine.vmi.name));
        let uid = machine.vmi.uid.clone();
        self.lock().insert(key.clone(), machine);
        Listed {
            registry: self.clone(),
            key,
            uid,
        }
    }

    /// Whether no machine is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Name, RunningMachine>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a machine in the registry.
#[derive(Debug)]
pub struct Listed {
    registry: Registry,
    key: Name,
    uid: Option<String>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut machines = self.registry.lock();
        // A VMI of the same name may have taken the place meanwhile.
        if machines
            .get(&self.key)
            .is_some_and(|m| m.vmi.uid == self.uid)
        {
            machines.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn machine(uid: &str) -> RunningMachine {
        let paths = LauncherPaths::in_pod(Path::new("/nonexistent"));
        RunningMachine::new(
            ObjectReference {
                namespace: Some("default".to_owned()),
                name: Some("a".to_owned()),
                uid: Some(uid.to_owned()),
                ..ObjectReference::default()
            },
            virt_cmd::client::connect(&paths.command_socket()),
            paths,
        )
    }

    #[tokio::test]
    async fn a_successor_of_the_same_name_stays_listed() {
        let registry = Registry::default();
        let first = registry.list(machine("1"));
        let second = registry.list(machine("2"));
        drop(first);
        assert_eq!(
            registry.find("default", "a").unwrap().vmi.uid.as_deref(),
            Some("2")
        );
        drop(second);
        assert!(registry.find("default", "a").is_none() && registry.is_empty());
    }

    #[tokio::test]
    async fn a_new_console_ends_the_old_one() {
        let machine = machine("1");
        let first = machine.take_console();
        let second = machine.clone().take_console();
        assert!(first.is_cancelled() && !second.is_cancelled());
    }
}
