//! What the node's processor offers to guests, read from /proc/cpuinfo by pure functions. The list is modest:
//! a feature is named only if the kernel shows it, a model only if every feature of it is there.

use std::collections::BTreeSet;

/// The processor in the words of KubeVirt's labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuFacts {
    /// `Intel`, `AMD`, …
    pub vendor: Option<String>,
    /// Features by the emulator's names.
    pub features: BTreeSet<String>,
    /// Named models whose features are all there.
    pub models: Vec<&'static str>,
    /// The richest of them, of the processor's own vendor if there is one.
    pub host_model: Option<&'static str>,
}

/// Reads the first processor of a /proc/cpuinfo.
#[must_use]
pub fn from_cpuinfo(text: &str) -> CpuFacts {
    let field = |name: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
    };
    let flags: BTreeSet<&str> = field("flags")
        .unwrap_or_default()
        .split_ascii_whitespace()
        .collect();
    let features: BTreeSet<String> = flags.iter().filter_map(|flag| feature(flag)).collect();
    let vendor = field("vendor_id").map(vendor_name);
    let usable: Vec<&Model> = MODELS
        .iter()
        .filter(|model| model.fits(&features))
        .collect();
    let own = usable
        .iter()
        .filter(|model| vendor.as_deref() == Some(model.vendor));
    let richest = own.chain(&usable).max_by_key(|model| {
        let own = vendor.as_deref() == Some(model.vendor);
        (own, model.features().count())
    });
    CpuFacts {
        host_model: richest.map(|model| model.name),
        models: usable.iter().map(|model| model.name).collect(),
        vendor,
        features,
    }
}

fn vendor_name(id: &str) -> String {
    match id {
        "GenuineIntel" => "Intel",
        "AuthenticAMD" => "AMD",
        "HygonGenuine" => "Hygon",
        other => other,
    }
    .to_owned()
}

/// The emulator's name of a kernel flag; None for flags that are the kernel's own and no feature of a guest.
fn feature(flag: &str) -> Option<String> {
    if let Some((_, name)) = RENAMED.iter().find(|(kernel, _)| *kernel == flag) {
        return Some((*name).to_owned());
    }
    SAME_NAME.contains(&flag).then(|| flag.to_owned())
}

/// Kernel flags that the emulator calls otherwise.
const RENAMED: &[(&str, &str)] = &[
    ("pni", "pni"),
    ("sse4_1", "sse4.1"),
    ("sse4_2", "sse4.2"),
    ("tsc_deadline_timer", "tsc-deadline"),
    ("nonstop_tsc", "invtsc"),
    ("sha_ni", "sha-ni"),
    ("cr8_legacy", "cr8legacy"),
    ("ibrs_enhanced", "ibrs-all"),
    ("avx512_vnni", "avx512vnni"),
    ("arch_capabilities", "arch-capabilities"),
    ("md_clear", "md-clear"),
    ("flush_l1d", "flush-l1d"),
    ("virt_ssbd", "virt-ssbd"),
    ("tsc_adjust", "tsc_adjust"),
];

/// Kernel flags that carry the emulator's name.
const SAME_NAME: &[&str] = &[
    "3dnowprefetch",
    "abm",
    "adx",
    "aes",
    "apic",
    "arat",
    "avx",
    "avx2",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512f",
    "avx512vl",
    "bmi1",
    "bmi2",
    "clflush",
    "clflushopt",
    "clwb",
    "clzero",
    "cmov",
    "cmp_legacy",
    "cx16",
    "cx8",
    "de",
    "erms",
    "f16c",
    "fma",
    "fpu",
    "fsgsbase",
    "fsrm",
    "fxsr",
    "fxsr_opt",
    "gfni",
    "hypervisor",
    "ibpb",
    "ibrs",
    "invpcid",
    "la57",
    "lahf_lm",
    "lm",
    "mca",
    "mce",
    "misalignsse",
    "mmx",
    "mmxext",
    "movbe",
    "movdir64b",
    "movdiri",
    "msr",
    "mtrr",
    "nx",
    "osvw",
    "pae",
    "pat",
    "pcid",
    "pclmulqdq",
    "pdpe1gb",
    "pge",
    "pku",
    "popcnt",
    "pse",
    "pse36",
    "rdpid",
    "rdrand",
    "rdseed",
    "rdtscp",
    "sep",
    "smap",
    "smep",
    "ss",
    "ssbd",
    "sse",
    "sse2",
    "sse4a",
    "ssse3",
    "stibp",
    "svm",
    "syscall",
    "topoext",
    "tsc",
    "umip",
    "vaes",
    "vme",
    "vmx",
    "vpclmulqdq",
    "wbnoinvd",
    "x2apic",
    "xgetbv1",
    "xsave",
    "xsavec",
    "xsaveerptr",
    "xsaveopt",
    "xsaves",
];

/// A named model: what it adds to the one that it builds on.
struct Model {
    name: &'static str,
    vendor: &'static str,
    adds: &'static [&'static [&'static str]],
}

impl Model {
    fn features(&self) -> impl Iterator<Item = &'static str> {
        self.adds.iter().flat_map(|part| part.iter().copied())
    }

    fn fits(&self, features: &BTreeSet<String>) -> bool {
        self.features().all(|feature| features.contains(feature))
    }
}

const BASE: &[&str] = &[
    "fpu", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic", "sep", "mtrr", "pge", "mca",
    "cmov", "pat", "pse36", "clflush", "mmx", "fxsr", "sse", "sse2", "lm", "nx", "syscall",
];
const NEHALEM: &[&str] = &[
    "pni", "ssse3", "sse4.1", "sse4.2", "cx16", "popcnt", "lahf_lm",
];
const WESTMERE: &[&str] = &["aes", "pclmulqdq"];
const SANDY_BRIDGE: &[&str] = &["avx", "xsave", "tsc-deadline", "x2apic", "rdtscp"];
const IVY_BRIDGE: &[&str] = &["fsgsbase", "smep", "erms", "f16c", "rdrand"];
const HASWELL: &[&str] = &[
    "fma", "movbe", "bmi1", "bmi2", "avx2", "invpcid", "pcid", "abm",
];
const BROADWELL: &[&str] = &["rdseed", "adx", "smap", "3dnowprefetch"];
const EPYC: &[&str] = &[
    "aes",
    "pclmulqdq",
    "avx",
    "avx2",
    "xsave",
    "xsavec",
    "xgetbv1",
    "xsaveopt",
    "rdtscp",
    "fsgsbase",
    "smep",
    "f16c",
    "rdrand",
    "fma",
    "movbe",
    "bmi1",
    "bmi2",
    "abm",
    "rdseed",
    "adx",
    "smap",
    "3dnowprefetch",
    "sse4a",
    "misalignsse",
    "mmxext",
    "osvw",
    "cr8legacy",
    "fxsr_opt",
    "pdpe1gb",
    "sha-ni",
    "clflushopt",
    "topoext",
    "arat",
];
const EPYC_ROME: &[&str] = &["clwb", "rdpid", "umip", "wbnoinvd", "clzero", "xsaveerptr"];
const EPYC_MILAN: &[&str] = &[
    "erms",
    "fsrm",
    "invpcid",
    "pcid",
    "vaes",
    "vpclmulqdq",
    "pku",
];

const MODELS: &[Model] = &[
    Model {
        name: "kvm64",
        vendor: "",
        adds: &[BASE, &["pni", "cx16"]],
    },
    Model {
        name: "Nehalem",
        vendor: "Intel",
        adds: &[BASE, NEHALEM],
    },
    Model {
        name: "Westmere",
        vendor: "Intel",
        adds: &[BASE, NEHALEM, WESTMERE],
    },
    Model {
        name: "SandyBridge",
        vendor: "Intel",
        adds: &[BASE, NEHALEM, WESTMERE, SANDY_BRIDGE],
    },
    Model {
        name: "IvyBridge",
        vendor: "Intel",
        adds: &[BASE, NEHALEM, WESTMERE, SANDY_BRIDGE, IVY_BRIDGE],
    },
    Model {
        name: "Haswell-noTSX",
        vendor: "Intel",
        adds: &[BASE, NEHALEM, WESTMERE, SANDY_BRIDGE, IVY_BRIDGE, HASWELL],
    },
    Model {
        name: "Broadwell-noTSX",
        vendor: "Intel",
        adds: &[
            BASE,
            NEHALEM,
            WESTMERE,
            SANDY_BRIDGE,
            IVY_BRIDGE,
            HASWELL,
            BROADWELL,
        ],
    },
    Model {
        name: "EPYC",
        vendor: "AMD",
        adds: &[BASE, NEHALEM, EPYC],
    },
    Model {
        name: "EPYC-Rome",
        vendor: "AMD",
        adds: &[BASE, NEHALEM, EPYC, EPYC_ROME],
    },
    Model {
        name: "EPYC-Milan",
        vendor: "AMD",
        adds: &[BASE, NEHALEM, EPYC, EPYC_ROME, EPYC_MILAN],
    },
];

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const BASE_FLAGS: &str = "fpu de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 lm nx syscall";
    const NEHALEM_FLAGS: &str = "pni ssse3 sse4_1 sse4_2 cx16 popcnt lahf_lm";

    fn cpuinfo(vendor: &str, flags: &str) -> String {
        format!(
            "processor\t: 0\nvendor_id\t: {vendor}\nmodel\t\t: 1\nflags\t\t: {BASE_FLAGS} {flags}\n\nprocessor\t: 1\n"
        )
    }

    #[test]
    fn an_old_intel() {
        let facts = from_cpuinfo(&cpuinfo(
            "GenuineIntel",
            &format!("{NEHALEM_FLAGS} aes pclmulqdq rep_good"),
        ));
        assert_eq!(facts.vendor.as_deref(), Some("Intel"));
        assert_eq!(facts.models, ["kvm64", "Nehalem", "Westmere"]);
        assert_eq!(facts.host_model, Some("Westmere"));
        assert!(facts.features.contains("sse4.2"));
        assert!(
            !facts.features.contains("rep_good"),
            "the kernel's own flags are no features"
        );
    }

    #[rstest]
    #[case::one_feature_missing(
        "GenuineIntel",
        "pni ssse3 sse4_1 cx16 popcnt lahf_lm",
        Some("kvm64")
    )]
    #[case::of_another_vendor("AuthenticAMD", NEHALEM_FLAGS, Some("Nehalem"))]
    #[case::nothing_fits("GenuineIntel", "", None)]
    fn host_models(#[case] vendor: &str, #[case] flags: &str, #[case] model: Option<&str>) {
        assert_eq!(from_cpuinfo(&cpuinfo(vendor, flags)).host_model, model);
    }

    #[test]
    fn an_empty_file_says_nothing() {
        assert_eq!(from_cpuinfo(""), CpuFacts::default());
    }
}
