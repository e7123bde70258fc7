//! Which number a cluster has: a claim file per number, made in one step, so that two clusters that
//! start at the same time never get the same network.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::PathBuf,
};

use anyhow::Context as _;

use super::state_root;
use crate::{
    cluster::plan::{NUMBERS, Name, Plan},
    run::Cmd,
};

fn claims() -> anyhow::Result<PathBuf> {
    Ok(state_root()?.with_file_name("numbers"))
}

/// Claims a number: the one that the name suggests if it is free, else the next.
pub fn claim(name: &Name) -> anyhow::Result<u8> {
    let dir = claims()?;
    fs::create_dir_all(&dir)?;
    let routes = Cmd::new("ip")
        .args(["-4", "route", "show", "table", "all"])
        .output()?;
    let first = preferred(&name.to_string());
    for step in 0..NUMBERS {
        let number = (first + step) % NUMBERS;
        let file = dir.join(number.to_string());
        let owner = fs::read_to_string(&file).ok();
        if owner.as_deref() == Some(&name.to_string()) {
            return Ok(number);
        }
        if owner.is_some() || is_routed(&routes, number) {
            continue;
        }
        match fs::File::options().write(true).create_new(true).open(&file) {
            Ok(mut claim) => {
                claim.write_all(name.to_string().as_bytes())?;
                return Ok(number);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("failed to claim {}", file.display()));
            }
        }
    }
    anyhow::bail!(
        "all {NUMBERS} cluster networks are taken; see {}",
        dir.display()
    )
}

/// Gives the number back, if it is this cluster's.
pub fn release(plan: &Plan) -> anyhow::Result<()> {
    let file = claims()?.join(plan.number.to_string());
    if fs::read_to_string(&file).ok().as_deref() == Some(&plan.name.to_string()) {
        fs::remove_file(&file)?;
    }
    Ok(())
}

fn preferred(name: &str) -> u8 {
    let sum = name.bytes().fold(0_u32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    u8::try_from(sum % u32::from(NUMBERS)).unwrap_or(0)
}

/// Whether the host knows a way to the number's network: then it belongs to somebody else.
fn is_routed(routes: &str, number: u8) -> bool {
    let prefix = format!("10.{}.", 100 + u16::from(number));
    routes
        .split_whitespace()
        .any(|word| word.starts_with(&prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_routes_are_respected() {
        let routes = "default via 192.0.2.1 dev eth0\n10.107.3.0/24 via 192.0.2.9 dev eth0\n";
        assert!(is_routed(routes, 7));
        assert!(!is_routed(routes, 8));
    }

    #[test]
    fn names_spread() {
        assert_ne!(preferred("virtmark"), preferred("conformance"));
    }
}
