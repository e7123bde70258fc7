//! Whether a device file exists, told anew at each change: a module loaded later makes its resource allocatable.

use std::{io, path::Path};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::dir_watch::{DirWatch, nearest_dir};

/// Keeps `healthy` true exactly while `path` exists, until `token` is cancelled.
///
/// # Errors
/// When no directory above `path` can be watched.
pub async fn follow(
    path: &Path,
    healthy: &watch::Sender<bool>,
    token: &CancellationToken,
) -> io::Result<()> {
    loop {
        let mut changes = DirWatch::new(&nearest_dir(path))?;
        let exists = path.exists();
        healthy.send_if_modified(|known| std::mem::replace(known, exists) != exists);
        tokio::select! {
            () = token.cancelled() => return Ok(()),
            change = changes.next() => change?,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn follows_a_file_in_a_directory_that_does_not_exist_yet() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("net/tun");
        let (sender, mut receiver) = watch::channel(false);
        let token = CancellationToken::new();
        let task = tokio::spawn({
            let (file, token) = (file.clone(), token.clone());
            async move { follow(&file, &sender, &token).await }
        });
        let settled = |want: bool| {
            let mut receiver = receiver.clone();
            async move {
                tokio::time::timeout(Duration::from_secs(5), receiver.wait_for(|v| *v == want))
                    .await
                    .unwrap()
                    .map(|v| *v)
                    .unwrap()
            }
        };
        std::fs::create_dir(dir.path().join("net")).unwrap();
        std::fs::write(&file, b"").unwrap();
        assert!(settled(true).await);
        std::fs::remove_file(&file).unwrap();
        assert!(!settled(false).await);
        token.cancel();
        task.await.unwrap().unwrap();
        assert!(receiver.changed().await.is_ok());
    }
}
