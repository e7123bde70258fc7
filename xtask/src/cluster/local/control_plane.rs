//! etcd, the API server, the controller manager and the scheduler: plain processes of the host that
//! listen on loopback and on the cluster's own bridge.

use std::time::{Duration, Instant};

use super::spawn;
use crate::{
    cluster::plan::Plan,
    progress::Step,
    run::{Cmd, tail},
};

/// An API server that is not ready after this time will not be.
const PATIENCE: Duration = Duration::from_secs(90);
/// A program that ended so often was not just early: the API server may end once before etcd is up.
const HOPELESS: usize = 5;

/// Starts all four; they find each other.
pub fn start(plan: &Plan) -> anyhow::Result<()> {
    spawn::service(plan, "etcd", &etcd(plan))?;
    spawn::service(plan, "kube-apiserver", &apiserver(plan))?;
    spawn::service(plan, "kube-controller-manager", &controller_manager(plan))?;
    spawn::service(plan, "kube-scheduler", &scheduler(plan))?;
    Ok(())
}

/// Waits until the API server says that it is ready.
pub fn wait_ready(plan: &Plan, step: &Step) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut noted = false;
    loop {
        if ready(plan) {
            return Ok(());
        }
        for name in ["etcd", "kube-apiserver"] {
            let log = read_log(plan, name);
            if spawn::ends(&log) >= HOPELESS {
                anyhow::bail!(
                    "{name} does not stay up; its last words:\n{}",
                    tail(&log, 15)
                );
            }
        }
        if started.elapsed() > PATIENCE {
            anyhow::bail!(
                "the API server is not ready after {} s; its last words:\n{}",
                PATIENCE.as_secs(),
                tail(&read_log(plan, "kube-apiserver"), 15)
            );
        }
        if !noted && started.elapsed() > Duration::from_secs(10) {
            step.note("the API server takes long");
            noted = true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn read_log(plan: &Plan, name: &str) -> String {
    let bytes = std::fs::read(plan.logs().join(format!("{name}.log"))).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether the API server answers now.
pub fn ready(plan: &Plan) -> bool {
    super::kubectl(plan)
        .args(["get", "--raw", "/readyz", "--request-timeout=2s"])
        .succeeds()
}

fn etcd(plan: &Plan) -> Cmd {
    let (client, peer) = (etcd_url(plan), format!("http://127.0.0.1:{}", plan.port(1)));
    Cmd::new(plan.bin.join("etcd"))
        .arg("--data-dir")
        .arg(plan.dir.join("etcd"))
        .arg(format!("--listen-client-urls={client}"))
        .arg(format!("--advertise-client-urls={client}"))
        .arg(format!("--listen-peer-urls={peer}"))
        .arg(format!("--initial-advertise-peer-urls={peer}"))
        .arg(format!("--initial-cluster=default={peer}"))
        // Certificates on both sides: the API server can never take another program's etcd for its
        // own, nor another program change ours.
        .arg("--client-cert-auth")
        .arg(format!("--trusted-ca-file={}", pki(plan, "ca.crt")))
        .arg(format!("--cert-file={}", pki(plan, "etcd.crt")))
        .arg(format!("--key-file={}", pki(plan, "etcd.key")))
        // The data is thrown away with the cluster: no need to wait for the disk.
        .args(["--unsafe-no-fsync", "--log-level=warn"])
}

fn etcd_url(plan: &Plan) -> String {
    format!("https://127.0.0.1:{}", plan.port(0))
}

fn pki(plan: &Plan, file: &str) -> String {
    plan.dir.join("pki").join(file).display().to_string()
}

fn apiserver(plan: &Plan) -> Cmd {
    let pki = |file: &str| pki(plan, file);
    Cmd::new(plan.bin.join("kube-apiserver")).args([
        format!("--etcd-servers={}", etcd_url(plan)),
        format!("--etcd-cafile={}", pki("ca.crt")),
        format!("--etcd-certfile={}", pki("etcd-client.crt")),
        format!("--etcd-keyfile={}", pki("etcd-client.key")),
        format!("--bind-address={}", plan.gateway()),
        format!("--advertise-address={}", plan.gateway()),
        "--secure-port=6443".to_owned(),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        format!("--service-account-key-file={}", pki("sa.pub")),
        format!("--service-account-signing-key-file={}", pki("sa.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-cluster-ip-range={}", plan.services()),
        "--authorization-mode=Node,RBAC".to_owned(),
        // Webhooks and aggregated APIs are reached by their pods' addresses: the host has routes
        // to pods but not to Services.
        "--enable-aggregator-routing=true".to_owned(),
        format!(
            "--requestheader-client-ca-file={}",
            pki("front-proxy-ca.crt")
        ),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        format!("--proxy-client-cert-file={}", pki("front-proxy.crt")),
        format!("--proxy-client-key-file={}", pki("front-proxy.key")),
        format!("--kubelet-client-certificate={}", pki("kubelet-client.crt")),
        format!("--kubelet-client-key={}", pki("kubelet-client.key")),
        format!("--kubelet-certificate-authority={}", pki("ca.crt")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--cert-dir={}", pki("generated")),
    ])
}

fn controller_manager(plan: &Plan) -> Cmd {
    let pki = |file: &str| pki(plan, file);
    component(plan, "kube-controller-manager", 2).args([
        format!("--service-account-private-key-file={}", pki("sa.key")),
        format!("--root-ca-file={}", pki("ca.crt")),
        format!("--cluster-signing-cert-file={}", pki("ca.crt")),
        format!("--cluster-signing-key-file={}", pki("ca.key")),
        format!("--service-cluster-ip-range={}", plan.services()),
        "--use-service-account-credentials=true".to_owned(),
    ])
}

fn scheduler(plan: &Plan) -> Cmd {
    component(plan, "kube-scheduler", 3)
}

/// The words that both clients of the API server share.
fn component(plan: &Plan, name: &str, port: u16) -> Cmd {
    let config = plan.dir.join(format!("{name}.conf"));
    Cmd::new(plan.bin.join(name))
        .arg(format!("--kubeconfig={}", config.display()))
        .arg(format!("--authentication-kubeconfig={}", config.display()))
        .arg(format!("--authorization-kubeconfig={}", config.display()))
        .arg("--bind-address=127.0.0.1")
        .arg(format!("--secure-port={}", plan.port(port)))
        .arg("--leader-elect=false")
        .arg(format!(
            "--cert-dir={}",
            plan.dir.join("pki/generated").join(name).display()
        ))
}
