//! How a component starts and how it fails: TLS provider, logs, signals, one printed error chain.

use std::{future::Future, io::Write as _, process::ExitCode};

use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Runs a component to its end. The token is cancelled by SIGTERM and SIGINT.
///
/// Prints the chain of errors, outermost first, and exits 1 when `app` fails.
pub fn run<F, Fut>(component: &'static str, app: F) -> ExitCode
where
    F: FnOnce(CancellationToken) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    init_logs();
    // A second call finds the provider installed already, which is what is wanted.
    drop(rustls::crypto::ring::default_provider().install_default());
    match start(app) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_chain(component, &error);
            ExitCode::FAILURE
        }
    }
}

fn start<F, Fut>(app: F) -> anyhow::Result<()>
where
    F: FnOnce(CancellationToken) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let token = CancellationToken::new();
        let signals = tokio::spawn(cancel_on_signal(token.clone()));
        let result = app(token).await;
        signals.abort();
        result
    })
}

async fn cancel_on_signal(token: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        tracing::warn!("failed to install signal handlers; the process ends at once on SIGTERM");
        return;
    };
    tokio::select! {
        _ = term.recv() => tracing::info!("SIGTERM: shutting down"),
        _ = int.recv() => tracing::info!("SIGINT: shutting down"),
    }
    token.cancel();
}

fn init_logs() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let result = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .try_init();
    // Tests in one process may have set up logs before.
    drop(result);
}

fn print_chain(component: &str, error: &anyhow::Error) {
    let mut text = format!("{component}: {error}");
    for cause in error.chain().skip(1) {
        text.push_str(&format!("\n  because: {cause}"));
    }
    text.push('\n');
    // Nothing is left to tell when stderr is gone.
    drop(std::io::stderr().write_all(text.as_bytes()));
}
