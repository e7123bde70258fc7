//! `cargo xtask cluster`: a Kubernetes cluster to test on, from whichever provider fits.

mod choice;
mod existing;
mod kind;
pub mod local;
pub mod plan;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, Subcommand};

pub use self::{choice::Provider, local::config::PAUSE_IMAGE};
use crate::{
    host,
    progress::{print_data, say},
    run::{Cmd, tail},
    tools::{self, Tools},
};
use plan::{MOST_NODES, Name};

/// Name of the cluster when none is given.
pub const DEFAULT_NAME: &str = "virtmark";

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask cluster up                      two nodes, from whatever fits this machine
  cargo xtask cluster up --reference          the same, with the reference installed
  export KUBECONFIG=$(cargo xtask cluster kubeconfig)
  cargo xtask cluster load image.tar
  cargo xtask cluster exec node-1 -- ip address
  cargo xtask cluster down")]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

/// Which cluster.
#[derive(Args, Clone, Debug)]
pub struct Which {
    /// Name of the cluster; clusters of different names live side by side.
    #[arg(long, default_value = DEFAULT_NAME)]
    pub name: Name,

    /// Where the cluster comes from.
    #[arg(long, value_enum, default_value_t = Provider::Auto)]
    pub provider: Provider,

    /// kubeconfig of a cluster that exists already.
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
}

/// How to make one.
#[derive(Args, Clone, Debug)]
pub struct Make {
    #[command(flatten)]
    pub which: Which,

    /// Number of nodes.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_NODES)))]
    pub nodes: u8,

    /// CPUs that each node claims; at least 8, so that small hosts can schedule ordinary manifests.
    #[arg(long)]
    pub node_cpus: Option<u16>,

    /// Run a name server too (CoreDNS; five minutes to build, once).
    #[arg(long)]
    pub dns: bool,

    /// Do not install missing packages; name them instead.
    #[arg(long)]
    pub no_install: bool,

    /// Use the Kubernetes programs in this directory instead of building them.
    #[arg(long)]
    pub k8s_bin_dir: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum ClusterCommand {
    /// Bring a cluster up; one that runs already is left alone.
    Up {
        #[command(flatten)]
        make: Make,
        /// Install the reference, ready to play with.
        #[arg(long)]
        reference: bool,
    },
    /// Take a cluster down and leave nothing behind.
    Down(Which),
    /// Say what is there; exits 0 only for a cluster that answers.
    Status(Which),
    /// Print the path of the kubeconfig.
    Kubeconfig(Which),
    /// Run a command in a node.
    Exec {
        #[command(flatten)]
        which: Which,
        /// Name of the node, such as node-1.
        node: String,
        /// The command; a shell when none is given.
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Print the last lines of every log file.
    Logs {
        #[command(flatten)]
        which: Which,
        /// Lines of each file.
        #[arg(long, default_value_t = 20)]
        lines: usize,
    },
    /// Import image archives on every node.
    Load {
        #[command(flatten)]
        which: Which,
        /// OCI archives.
        archives: Vec<PathBuf>,
    },
    /// Bring clusters up and down and check that nothing is left behind.
    Selftest(Make),
}

/// A cluster that can be used.
pub enum Cluster {
    /// One of our own.
    Local(plan::Plan),
    /// One of kind's, by name.
    Kind(kind::Kind),
    /// Somebody else's.
    Existing(existing::Existing),
}

impl Cluster {
    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Local(plan) => plan.kubeconfig(),
            Self::Kind(kind) => kind.kubeconfig(),
            Self::Existing(existing) => existing.kubeconfig(),
        }
    }

    /// kubectl for it.
    pub fn kubectl(&self) -> Cmd {
        match self {
            Self::Local(plan) => local::kubectl(plan),
            Self::Kind(_) | Self::Existing(_) => Cmd::new("kubectl")
                .arg("--kubeconfig")
                .arg(self.kubeconfig()),
        }
    }

    /// Makes an image archive known to every node.
    pub fn load(&self, archive: &Path) -> anyhow::Result<()> {
        match self {
            Self::Local(plan) => local::load_image(plan, archive),
            Self::Kind(kind) => kind.load(archive),
            Self::Existing(_) => anyhow::bail!(
                "images cannot be loaded into a cluster that is not ours: push {} to a registry that it reaches",
                archive.display()
            ),
        }
    }

    /// Removes it, if it is ours to remove.
    pub fn down(&self) -> anyhow::Result<()> {
        match self {
            Self::Local(plan) => local::down(plan),
            Self::Kind(kind) => kind.down(),
            Self::Existing(_) => {
                say!("the cluster was there before us and stays");
                Ok(())
            }
        }
    }
}

/// Brings a cluster up.
pub fn up(root: &Path, make: &Make) -> anyhow::Result<Cluster> {
    let which = &make.which;
    match choice::choose(&which.provider, &choice::look(root, which, make.dns))? {
        Provider::Existing => {
            existing::Existing::open(which.kubeconfig.as_deref()).map(Cluster::Existing)
        }
        Provider::Kind => kind::Kind::up(&which.name, make.nodes).map(Cluster::Kind),
        Provider::Local | Provider::Auto => {
            host::require_root("a local cluster")?;
            host::ensure(host::CLUSTER, !make.no_install)?;
            let tools = tools_for(root, make)?;
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            let wish = local::Wish {
                name: which.name.clone(),
                nodes: make.nodes,
                node_cpus: make
                    .node_cpus
                    .unwrap_or_else(|| u16::try_from(cpus).unwrap_or(8).max(8)),
                dns: make.dns,
            };
            local::up(&wish, &tools).map(Cluster::Local)
        }
    }
}

fn tools_for(root: &Path, make: &Make) -> anyhow::Result<Tools> {
    tools::ensure(
        root,
        &tools::Options {
            install: !make.no_install,
            dns: make.dns,
            k8s_bin_dir: make.k8s_bin_dir.clone(),
        },
    )
}

/// Finds a cluster that was brought up before.
pub fn find(which: &Which) -> anyhow::Result<Cluster> {
    look_up(which)?.with_context(|| {
        format!(
            "there is no cluster {name}: cargo xtask cluster up --name {name}",
            name = which.name
        )
    })
}

fn look_up(which: &Which) -> anyhow::Result<Option<Cluster>> {
    if which.kubeconfig.is_some() || which.provider == Provider::Existing {
        let existing = existing::Existing::open(which.kubeconfig.as_deref())?;
        return Ok(Some(Cluster::Existing(existing)));
    }
    if which.provider != Provider::Kind
        && let Some(plan) = local::load(&which.name)?
    {
        return Ok(Some(Cluster::Local(plan)));
    }
    let kind = kind::Kind::named(&which.name)?;
    let fits = which.provider != Provider::Local && kind.kubeconfig().exists();
    Ok(fits.then_some(Cluster::Kind(kind)))
}

/// Runs the subcommand.
pub fn run(root: &Path, args: &ClusterArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        ClusterCommand::Up { make, reference } => bring_up(root, make, *reference)?,
        ClusterCommand::Down(which) => match look_up(which)? {
            Some(cluster) => cluster.down()?,
            None => say!("there is no cluster {}", which.name),
        },
        ClusterCommand::Status(which) => return status(which),
        ClusterCommand::Kubeconfig(which) => print_data!("{}", find(which)?.kubeconfig().display()),
        ClusterCommand::Exec {
            which,
            node,
            command,
        } => return exec(which, node, command),
        ClusterCommand::Logs { which, lines } => logs(which, *lines)?,
        ClusterCommand::Load { which, archives } => {
            let cluster = find(which)?;
            archives
                .iter()
                .try_for_each(|archive| cluster.load(archive))?;
        }
        ClusterCommand::Selftest(make) => crate::selftest::run(root, make)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn bring_up(root: &Path, make: &Make, reference: bool) -> anyhow::Result<()> {
    let cluster = up(root, make)?;
    if reference {
        crate::reference::install(root, &cluster, !make.no_install)?;
    }
    let kubectl = cluster.kubectl();
    let program = kubectl
        .words()
        .next()
        .map(|p| p.to_string_lossy().into_owned());
    say!("\nwhat to type next:");
    say!("  export KUBECONFIG={}", cluster.kubeconfig().display());
    if let Some(program) = program.filter(|program| program.contains('/')) {
        say!("  alias kubectl={program}");
    }
    if reference {
        say!("  kubectl apply -f reference/deploy/demo-vm.yaml");
        say!("  kubectl get vm,vmi,pod -o wide");
        say!("  cargo run -p virtmark -- run --id VM-LIFE-0001");
    } else {
        say!("  kubectl get nodes -o wide");
    }
    say!("  cargo xtask cluster down --name {}", make.which.name);
    Ok(())
}

fn status(which: &Which) -> anyhow::Result<ExitCode> {
    let Some(cluster) = look_up(which)? else {
        print_data!("{}: absent", which.name);
        return Ok(ExitCode::FAILURE);
    };
    let nodes = cluster
        .kubectl()
        .args(["get", "nodes", "--output=wide", "--request-timeout=5s"])
        .output();
    let provider = match &cluster {
        Cluster::Local(plan) => format!("local, {}", plan.dir.display()),
        Cluster::Kind(_) => "kind".to_owned(),
        Cluster::Existing(_) => "existing".to_owned(),
    };
    Ok(match nodes {
        Ok(nodes) => {
            print_data!("{}: running ({provider})\n{}", which.name, nodes.trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_data!("{}: does not answer ({provider})", which.name);
            say!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

fn exec(which: &Which, node: &str, command: &[String]) -> anyhow::Result<ExitCode> {
    let Cluster::Local(plan) = find(which)? else {
        anyhow::bail!("exec works on local clusters; on others use kubectl debug node/{node}");
    };
    let shell = ["sh".to_owned()];
    let command = if command.is_empty() { &shell } else { command };
    let status = local::exec(&plan, node, command)?;
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1);
    Ok(ExitCode::from(code))
}

fn logs(which: &Which, lines: usize) -> anyhow::Result<()> {
    let Cluster::Local(plan) = find(which)? else {
        anyhow::bail!("logs works on local clusters; kind has `kind export logs`");
    };
    for file in local::log_files(&plan) {
        let text = std::fs::read(&file).unwrap_or_default();
        print_data!("==> {}", file.display());
        print_data!("{}", tail(&String::from_utf8_lossy(&text), lines));
    }
    Ok(())
}
