//! Criterion group: what a boot on virt-vmm costs inside one process.
//!
//! Needs `/dev/kvm` and the probe guest's kernel in `PROBE_ELF`.

use std::path::PathBuf;
use std::sync::mpsc::channel;

use anyhow::Context;
use criterion::{Criterion, criterion_group, criterion_main};
use virt_vmm::{Event, Machine, MachineConfig, ResetCause};

fn config(cmdline: &str) -> anyhow::Result<MachineConfig> {
    let probe =
        std::env::var_os("PROBE_ELF").context("PROBE_ELF does not name the probe's kernel")?;
    let mut config = MachineConfig::new(PathBuf::from(probe), 128 << 20);
    config.cmdline = cmdline.to_owned();
    config.debug_exit = true;
    Ok(config)
}

fn boot(criterion: &mut Criterion) {
    let Ok(config) = config("off=exit") else {
        return;
    };
    let mut group = criterion.benchmark_group("boot");
    group.sample_size(50);
    group.bench_function("create", |bencher| {
        bencher.iter_with_large_drop(|| Machine::create(&config, Box::new(drop)));
    });
    group.bench_function("start to exit", |bencher| {
        bencher.iter(|| {
            let machine = Machine::create(&config, Box::new(drop))?;
            machine.start()?;
            anyhow::Ok(machine.wait())
        });
    });
    group.finish();
}

fn reset(criterion: &mut Criterion) {
    let Ok(config) = config("off=triple") else {
        return;
    };
    let (sender, events) = channel();
    let sink = Box::new(move |stamped: virt_vmm::Stamped| drop(sender.send(stamped.event)));
    // The guest resets itself over and over; one iteration is one boot in place.
    let Ok(machine) = Machine::create(&config, sink) else {
        return;
    };
    if machine.start().is_err() {
        return;
    }
    criterion.bench_function("boot/reset in place", |bencher| {
        bencher.iter(|| {
            while events.recv()
                != Ok(Event::Rebooted {
                    cause: ResetCause::TripleFault,
                })
            {}
        });
    });
}

criterion_group!(benches, boot, reset);
criterion_main!(benches);
