//! The KubeVirt API: wire types, CRDs, defaulting and admission rules, all pure.
