//! Finds the files that a domain names, before anything is started.
//!
//! A missing file is no failed machine: the handler reports it and asks again, as it does when an
//! image turns out to be empty.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use thiserror::Error;
use virt_cmd::{
    Domain,
    domain::{Disk, Kernel},
};

mod qcow2;

use qcow2::Qcow2Error;

const ELF_MAGIC: &[u8] = b"\x7fELF";

/// What the domain's paths lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kernel: Option<KernelKind>,
    pub(crate) images: Vec<Image>,
}

/// What a kernel file is, as far as the choice of a back end depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelKind {
    /// An ELF file, which is entered directly.
    Elf,
    /// Anything else, a bzImage as a rule.
    Other,
}

/// A disk of the domain and its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) disk: Disk,
    pub(crate) file: PathBuf,
    pub(crate) format: Format,
}

/// How an image is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Raw,
    Qcow2,
}

impl Format {
    /// QEMU's name of it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub(crate) enum FilesError {
    /// It is not there or cannot be read.
    #[error("failed to open the {what} {path}")]
    Open {
        what: String,
        path: PathBuf,
        source: io::Error,
    },
    /// It is something else.
    #[error("the {what} {path} is no regular file")]
    NoFile { what: String, path: PathBuf },
    /// A containerDisk directory must hold one image.
    #[error("failed to find disk file of {disk}: {path} holds {count} files, expected 1")]
    NotOne {
        disk: String,
        path: PathBuf,
        count: usize,
    },
    /// The image leads to other files.
    #[error("the image of disk {disk} cannot be used")]
    Image { disk: String, source: Qcow2Error },
}

/// Checks the kernel's files and finds every disk's image.
pub(crate) fn find(domain: &Domain) -> Result<Found, FilesError> {
    let kernel = domain.kernel.as_ref().map(find_kernel).transpose()?;
    let images = domain
        .disks
        .iter()
        .map(find_image)
        .collect::<Result<_, _>>()?;
    Ok(Found { kernel, images })
}

fn find_kernel(kernel: &Kernel) -> Result<KernelKind, FilesError> {
    let mut file = open("kernel", &kernel.path)?;
    let head = read_head("kernel", &kernel.path, &mut file, ELF_MAGIC.len() as u64)?;
    if let Some(initrd) = &kernel.initrd {
        open("initrd", initrd)?;
    }
    Ok(if head == ELF_MAGIC {
        KernelKind::Elf
    } else {
        KernelKind::Other
    })
}

fn find_image(disk: &Disk) -> Result<Image, FilesError> {
    let file = if disk.path.is_dir() {
        only_file(disk)?
    } else {
        disk.path.clone()
    };
    let mut opened = open(&format!("disk {}", disk.name), &file)?;
    let format = if disk.ephemeral {
        probe(disk, &file, &mut opened)?
    } else {
        Format::Raw
    };
    Ok(Image {
        disk: disk.clone(),
        file,
        format,
    })
}

/// Only an image that the guest cannot change is probed: a guest could write another format's header
/// onto its own raw disk and so reach files of ours at the next start.
fn probe(disk: &Disk, path: &Path, file: &mut File) -> Result<Format, FilesError> {
    let head = read_head(&format!("disk {}", disk.name), path, file, qcow2::HEAD)?;
    match qcow2::check(&head) {
        Ok(true) => Ok(Format::Qcow2),
        Ok(false) => Ok(Format::Raw),
        Err(source) => Err(FilesError::Image {
            disk: disk.name.clone(),
            source,
        }),
    }
}

fn read_head(what: &str, path: &Path, file: &mut File, length: u64) -> Result<Vec<u8>, FilesError> {
    let mut head = Vec::new();
    match file.take(length).read_to_end(&mut head) {
        Ok(_) => Ok(head),
        Err(source) => Err(FilesError::Open {
            what: what.to_owned(),
            path: path.to_owned(),
            source,
        }),
    }
}

fn only_file(disk: &Disk) -> Result<PathBuf, FilesError> {
    let failed = |source| FilesError::Open {
        what: format!("directory of disk {}", disk.name),
        path: disk.path.clone(),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(&disk.path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Links are not followed: they could lead out of the image.
        if entry.file_type().map_err(failed)?.is_file() {
            files.push(entry.path());
        }
    }
    match (files.pop(), files.len()) {
        (Some(file), 0) => Ok(file),
        (last, others) => Err(FilesError::NotOne {
            disk: disk.name.clone(),
            path: disk.path.clone(),
            count: others + usize::from(last.is_some()),
        }),
    }
}

fn open(what: &str, path: &Path) -> Result<File, FilesError> {
    let failed = |source| FilesError::Open {
        what: what.to_owned(),
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_file() {
        Ok(file)
    } else {
        Err(FilesError::NoFile {
            what: what.to_owned(),
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tempfile::{TempDir, tempdir};
    use virt_cmd::domain::Bus;

    use super::*;
    use crate::fixture;

    fn directory(files: &[(&str, &[u8])]) -> TempDir {
        let dir = tempdir().unwrap();
        for (name, content) in files {
            fs::write(dir.path().join(name), content).unwrap();
        }
        dir
    }

    fn disk_at(path: &Path) -> Domain {
        let disk = Disk {
            path: path.to_owned(),
            ..fixture::container_disk("root", Bus::Virtio)
        };
        Domain {
            disks: vec![disk],
            ..fixture::disk()
        }
    }

    #[rstest]
    #[case::raw("any.img", b"\x33\xc0", Format::Raw)]
    #[case::qcow2("any.img", &qcow2::head(3, 0, 0), Format::Qcow2)]
    #[case::empty("any.img", b"", Format::Raw)]
    fn the_single_file_of_a_directory_is_the_image(
        #[case] name: &str,
        #[case] head: &[u8],
        #[case] format: Format,
    ) {
        let dir = directory(&[(name, head)]);
        let images = find(&disk_at(dir.path())).unwrap().images;
        assert_eq!(
            (images[0].file.as_path(), images[0].format),
            (dir.path().join(name).as_path(), format)
        );
    }

    #[rstest]
    #[case::none(&[], 0)]
    #[case::two(&[("a", b"".as_slice()), ("b", b"")], 2)]
    fn a_directory_without_a_single_file_is_refused(
        #[case] files: &[(&str, &[u8])],
        #[case] count: usize,
    ) {
        let dir = directory(files);
        let message = find(&disk_at(dir.path())).unwrap_err().to_string();
        let expected = format!(
            "failed to find disk file of root: {} holds {count} files, expected 1",
            dir.path().display()
        );
        assert_eq!(message, expected);
    }

    #[test]
    fn a_disk_that_the_guest_can_change_is_never_probed() {
        let dir = directory(&[("disk.img", &qcow2::head(3, 104, 0))]);
        let mut domain = disk_at(&dir.path().join("disk.img"));
        domain.disks[0].ephemeral = false;
        assert_eq!(find(&domain).unwrap().images[0].format, Format::Raw);
        domain.disks[0].ephemeral = true;
        assert_eq!(
            find(&domain).unwrap_err().to_string(),
            "the image of disk root cannot be used"
        );
    }

    #[test]
    fn missing_files_are_named() {
        let dir = directory(&[("kernel", b"")]);
        let mut domain = fixture::kernel();
        let at = |name: &str| dir.path().join(name);
        domain.kernel = Some(Kernel {
            path: at("kernel"),
            initrd: Some(at("initrd")),
            cmdline: String::new(),
        });
        let message = find(&domain).unwrap_err().to_string();
        assert_eq!(
            message,
            format!("failed to open the initrd {}", at("initrd").display())
        );
        fs::write(at("initrd"), b"").unwrap();
        assert_eq!(
            find(&domain).unwrap(),
            Found {
                kernel: Some(KernelKind::Other),
                images: Vec::new()
            }
        );
        fs::write(at("kernel"), b"\x7fELF\x02\x01").unwrap();
        assert_eq!(find(&domain).unwrap().kernel, Some(KernelKind::Elf));
        domain.kernel = Some(Kernel {
            path: dir.path().into(),
            initrd: None,
            cmdline: String::new(),
        });
        let message = find(&domain).unwrap_err().to_string();
        assert_eq!(
            message,
            format!("the kernel {} is no regular file", dir.path().display())
        );
    }
}
