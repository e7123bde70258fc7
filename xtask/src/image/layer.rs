//! One layer of an image as a tar file that depends on nothing but its entries: sorted paths,
//! fixed times and owners, so that the same input gives the same bytes everywhere.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Cursor, Read, Write},
    path::{Path, PathBuf},
};

use tar::{Builder, EntryType, Header, HeaderMode};

/// What a path in the layer holds.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A directory with this mode.
    Dir(u32),
    /// Bytes of our own, with this mode.
    Bytes(Vec<u8>, u32),
    /// The content of a file on this machine, with this mode.
    File(PathBuf, u32),
}

/// Entries by path; paths are relative, without a leading slash. Missing parents are added.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    entries: BTreeMap<String, Entry>,
}

impl Layer {
    /// Puts an entry at a path; an entry that was there before is replaced.
    pub fn put(&mut self, path: &str, entry: Entry) -> &mut Self {
        let path = path.trim_matches('/');
        let mut parent = Path::new(path).parent();
        while let Some(dir) = parent.filter(|dir| !dir.as_os_str().is_empty()) {
            let dir_path = dir.to_string_lossy().into_owned();
            self.entries.entry(dir_path).or_insert(Entry::Dir(0o755));
            parent = dir.parent();
        }
        self.entries.insert(path.to_owned(), entry);
        self
    }

    /// Writes the tar file.
    pub fn write_tar(&self, out: impl Write) -> io::Result<()> {
        let mut tar = Builder::new(out);
        tar.mode(HeaderMode::Deterministic);
        for (path, entry) in &self.entries {
            append(&mut tar, path, entry)?;
        }
        tar.finish()
    }
}

fn append<W: Write>(tar: &mut Builder<W>, path: &str, entry: &Entry) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    match entry {
        Entry::Dir(mode) => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(*mode);
            header.set_size(0);
            tar.append_data(&mut header, format!("{path}/"), io::empty())
        }
        Entry::Bytes(bytes, mode) => file(
            tar,
            header,
            path,
            *mode,
            bytes.len() as u64,
            Cursor::new(bytes),
        ),
        Entry::File(source, mode) => {
            let with_path =
                |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", source.display()));
            let content = File::open(source).map_err(with_path)?;
            let size = content.metadata().map_err(with_path)?.len();
            file(tar, header, path, *mode, size, content)
        }
    }
}

fn file<W: Write>(
    tar: &mut Builder<W>,
    mut header: Header,
    path: &str,
    mode: u32,
    size: u64,
    content: impl Read,
) -> io::Result<()> {
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_size(size);
    tar.append_data(&mut header, path, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(layer: &Layer) -> Vec<u8> {
        let mut out = Vec::new();
        layer.write_tar(&mut out).unwrap();
        out
    }

    #[test]
    fn the_order_of_putting_does_not_matter() {
        let mut a = Layer::default();
        a.put("etc/passwd", Entry::Bytes(b"root".to_vec(), 0o644));
        a.put("usr/bin/x", Entry::Bytes(b"x".to_vec(), 0o755));
        let mut b = Layer::default();
        b.put("/usr/bin/x", Entry::Bytes(b"x".to_vec(), 0o755));
        b.put("etc/passwd", Entry::Bytes(b"root".to_vec(), 0o644));
        assert_eq!(bytes(&a), bytes(&b));
    }

    #[test]
    fn parents_come_first_and_modes_are_kept() {
        let mut layer = Layer::default();
        layer.put("tmp", Entry::Dir(0o1777));
        layer.put("usr/bin/x", Entry::Bytes(b"x".to_vec(), 0o755));
        let tar = bytes(&layer);
        let mut archive = tar::Archive::new(Cursor::new(tar));
        let seen: Vec<(String, u32)> = archive
            .entries()
            .unwrap()
            .map(|e| {
                let e = e.unwrap();
                let path = e.path().unwrap().display().to_string();
                (path, e.header().mode().unwrap())
            })
            .collect();
        let want = [
            ("tmp/", 0o1777),
            ("usr/", 0o755),
            ("usr/bin/", 0o755),
            ("usr/bin/x", 0o755),
        ];
        assert_eq!(seen, want.map(|(p, m)| (p.to_owned(), m)));
    }
}
