//! The program from its arguments to its end: health at once, the controllers once it leads.

use std::sync::Arc;

use anyhow::Context as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client, Resource, ResourceExt as _, runtime::watcher};
use kubevirt_api::{
    names,
    v1::{KubeVirt, VirtualMachine, VirtualMachineInstance},
};
use tokio_util::sync::CancellationToken;
use virt_kit::{
    client,
    events::EventRecorder,
    guard::Guarded,
    health::Health,
    leader::{self, LeaseConfig},
    serve,
    tls::{self, ClientAuth},
};

use crate::{
    args::Args,
    context::Context,
    node,
    queue::{self, Doorbell, Rings},
    vm, vmi, watch,
};

/// Runs until the token is cancelled or the lease is lost.
pub(crate) async fn run(args: Args, token: CancellationToken) -> anyhow::Result<()> {
    let client = client::connect(&args.client)
        .await
        .context("failed to reach the API server; check --kubeconfig or the ServiceAccount")?;
    let identity = tls::server_identity(&args.certs.server_cert_dir)
        .context("failed to load the server certificate; check --server-cert-dir")?;
    let tls = tls::server_config(identity, ClientAuth::None)?;
    let server = serve::https(args.listen, tls, Health::new().router(), token.clone());

    let lease = LeaseConfig::new(&args.client.namespace, "virt-controller", &args.identity);
    let work = leader::run(client.clone(), lease, token.clone(), async |leading| {
        control(client, &args, leading).await;
        Ok(())
    });
    tokio::select! {
        // A server that ends well was asked to; the work then ends too and gives the lease up.
        Err(error) = server => Err(error).context("failed to serve health; is the address of --listen free?"),
        result = work => Ok(result?),
    }
}

/// Watches and handles, until the token is cancelled.
async fn control(client: Client, args: &Args, token: CancellationToken) {
    let (vm_bell, vm_rings) = Doorbell::new();
    let (vmi_bell, vmi_rings) = Doorbell::new();
    let (node_bell, node_rings) = Doorbell::new();
    let (context, pumps) = watches(client, args, vm_bell, vmi_bell, node_bell);
    tokio::select! {
        () = token.cancelled() => {}
        _ = futures::future::select_all(pumps) => tracing::error!("a watch ended"),
        () = handle(Arc::new(context), vm_rings, vmi_rings, node_rings) => {}
    }
}

/// The stores, each with the watch that fills it and rings for those whom a change concerns.
fn watches(
    client: Client,
    args: &Args,
    vm_bell: Doorbell<VirtualMachine>,
    vmi_bell: Doorbell<VirtualMachineInstance>,
    node_bell: Doorbell<Node>,
) -> (Context, Vec<BoxFuture<'static, ()>>) {
    let everything = watcher::Config::default;
    let (vms, vm_pump) = {
        let (vm_bell, vmi_bell) = (vm_bell.clone(), vmi_bell.clone());
        watch::follow::<VirtualMachine>(Api::all(client.clone()), everything(), move |vm| {
            ring(&vm_bell, vm);
            // A VMI is named after its VM, and lets go of its finalizer when the VM is gone.
            vmi_bell.ring(vm.meta().namespace.as_deref(), &vm.name_any());
        })
    };
    let (vmis, vmi_pump) = {
        let vmi_bell = vmi_bell.clone();
        watch::follow::<VirtualMachineInstance>(
            Api::all(client.clone()),
            everything(),
            move |vmi| {
                ring(&vmi_bell, vmi);
                vm_bell.ring(vmi.meta().namespace.as_deref(), &vmi.name_any());
            },
        )
    };
    let launchers = everything().labels(&format!("{}=virt-launcher", names::LABEL_APP));
    let (pods, pod_pump) = watch::follow::<Pod>(Api::all(client.clone()), launchers, move |pod| {
        if let Some(owner) = vmi::pod_owner(pod.meta()) {
            vmi_bell.ring(pod.meta().namespace.as_deref(), &owner.name);
        }
    });
    let (nodes, node_pump) =
        watch::follow::<Node>(Api::all(client.clone()), everything(), move |node| {
            ring(&node_bell, node);
        });
    // A changed setting concerns pods that are made later; nobody needs to look again.
    let kubevirts = Api::<Guarded<KubeVirt>>::namespaced(client.clone(), &args.client.namespace);
    let (kubevirts, kubevirt_pump) = watch::follow(kubevirts, everything(), |_| {});
    let context = Context {
        events: EventRecorder::new(client.clone(), "virtualmachine-controller"),
        client,
        launcher_image: args.launcher_image.clone(),
        namespace: args.client.namespace.clone(),
        vms,
        vmis,
        pods,
        nodes,
        kubevirts,
    };
    let pumps: Vec<BoxFuture<'static, ()>> = vec![
        Box::pin(vm_pump),
        Box::pin(vmi_pump),
        Box::pin(pod_pump),
        Box::pin(node_pump),
        Box::pin(kubevirt_pump),
    ];
    (context, pumps)
}

fn ring<K>(bell: &Doorbell<K>, object: &Guarded<K>)
where
    K: Resource<DynamicType = ()>,
{
    bell.ring(object.meta().namespace.as_deref(), &object.name_any());
}

/// Handlers start when every store has been filled once: half of the truth leads to wrong decisions.
async fn handle(
    context: Arc<Context>,
    vm_rings: Rings<VirtualMachine>,
    vmi_rings: Rings<VirtualMachineInstance>,
    node_rings: Rings<Node>,
) {
    let filled = futures::try_join!(
        context.vms.wait_until_ready(),
        context.vmis.wait_until_ready(),
        context.pods.wait_until_ready(),
        context.nodes.wait_until_ready(),
        context.kubevirts.wait_until_ready(),
    );
    if filled.is_err() {
        return;
    }
    tracing::info!("all stores are filled");
    let (vms, vmis, nodes) = (
        context.vms.clone(),
        context.vmis.clone(),
        context.nodes.clone(),
    );
    futures::join!(
        queue::serve(Arc::clone(&context), vms, vm_rings, vm::reconcile),
        queue::serve(Arc::clone(&context), vmis, vmi_rings, vmi::reconcile),
        queue::serve(context, nodes, node_rings, node::reconcile),
    );
}
