//! Rules on what a machine says about its pod: names, DNS, start and eviction.

use super::{Candidate, Cause, Rule, syntax};

pub(super) const RULES: &[Rule] = &[
    host_name,
    subdomain,
    service_account_name,
    service_account_matches_volume,
    start_strategy,
    eviction_strategy,
    dns_policy,
    dns_config_is_there,
    name_servers,
    search_domains,
    dns_options,
    spread_constraints,
];

const MOST_NAME_SERVERS: usize = 3;
const MOST_SEARCH_DOMAINS: usize = 6;
const LONGEST_SEARCH_LIST: usize = 256;

/// 1: the host name is a DNS label.
fn host_name(c: &Candidate<'_>) -> Vec<Cause> {
    let field = c.root.child("hostname");
    match &c.spec.hostname {
        Some(name) if !name.is_empty() && !syntax::is_dns_label(name) => vec![Cause::invalid(
            &field,
            format!(
                "{field} does not conform to the kubernetes DNS_LABEL rules : {}",
                syntax::DNS_LABEL_MESSAGE
            ),
        )],
        _ => vec![],
    }
}

/// 2: the subdomain is a DNS subdomain.
fn subdomain(c: &Candidate<'_>) -> Vec<Cause> {
    let field = c.root.child("subdomain");
    match &c.spec.subdomain {
        Some(name) if !name.is_empty() && !syntax::is_dns_subdomain(name) => vec![Cause::invalid(
            &field,
            format!(
                "{field} does not conform to the kubernetes DNS_SUBDOMAIN rules : {}",
                syntax::DNS_SUBDOMAIN_MESSAGE
            ),
        )],
        _ => vec![],
    }
}

/// 3: the name of the ServiceAccount is one that an object can have.
fn service_account_name(c: &Candidate<'_>) -> Vec<Cause> {
    let field = c.root.child("serviceAccountName");
    match &c.spec.service_account_name {
        Some(name) if !name.is_empty() && !syntax::is_dns_subdomain(name) => {
            vec![Cause::invalid(
                &field,
                format!("{field} is not a valid service account name: {name}"),
            )]
        }
        _ => vec![],
    }
}

/// 4: the pod's ServiceAccount is the one whose token a volume shows.
fn service_account_matches_volume(c: &Candidate<'_>) -> Vec<Cause> {
    let Some(name) = c
        .spec
        .service_account_name
        .as_deref()
        .filter(|n| !n.is_empty())
    else {
        return vec![];
    };
    let field = c.root.child("serviceAccountName");
    c.spec
        .volumes
        .iter()
        .flatten()
        .filter_map(|v| v.service_account.as_ref()?.service_account_name.as_deref())
        .filter(|other| *other != name)
        .map(|_| {
            Cause::invalid(
                &field,
                format!(
                    "{field} and the serviceAccount volume must reference the same service account"
                ),
            )
        })
        .collect()
}

/// 34: a machine starts running, or paused.
fn start_strategy(c: &Candidate<'_>) -> Vec<Cause> {
    one_of(
        c,
        "startStrategy",
        c.spec.start_strategy.as_deref(),
        &["Paused"],
    )
}

/// 36: the eviction strategy is one that exists.
fn eviction_strategy(c: &Candidate<'_>) -> Vec<Cause> {
    let known = ["None", "LiveMigrate", "LiveMigrateIfPossible", "External"];
    one_of(
        c,
        "evictionStrategy",
        c.spec.eviction_strategy.as_deref(),
        &known,
    )
}

fn one_of(c: &Candidate<'_>, name: &str, word: Option<&str>, known: &[&str]) -> Vec<Cause> {
    match word {
        Some(word) if !known.contains(&word) => {
            let field = c.root.child(name);
            let message = format!("{field} is set with an unrecognized option: {word}");
            vec![Cause::invalid(&field, message)]
        }
        _ => vec![],
    }
}

/// 49: the DNS policy is one that pods know.
fn dns_policy(c: &Candidate<'_>) -> Vec<Cause> {
    let known = [
        "ClusterFirstWithHostNet",
        "ClusterFirst",
        "Default",
        "None",
        "",
    ];
    match c.spec.dns_policy.as_deref() {
        Some(word) if !known.contains(&word) => {
            let field = c.root.child("dnsPolicy");
            vec![Cause::not_supported(
                &field,
                format!(
                    "DNSPolicy: {word} is not supported, valid values: [ClusterFirstWithHostNet ClusterFirst Default None ]"
                ),
            )]
        }
        _ => vec![],
    }
}

/// 50, 51: without a policy the name servers must be given.
fn dns_config_is_there(c: &Candidate<'_>) -> Vec<Cause> {
    if c.spec.dns_policy.as_deref() != Some("None") {
        return vec![];
    }
    let field = c.root.child("dnsConfig");
    match &c.spec.dns_config {
        None => vec![Cause::required(
            &field,
            format!("must provide `{field}` when `dnsPolicy` is None"),
        )],
        Some(config) if config.nameservers.as_ref().is_none_or(Vec::is_empty) => {
            vec![Cause::required(
                &field.child("nameservers"),
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            )]
        }
        Some(_) => vec![],
    }
}

/// 52, 53: at most three name servers, each an IP address.
fn name_servers(c: &Candidate<'_>) -> Vec<Cause> {
    let servers = c
        .spec
        .dns_config
        .as_ref()
        .and_then(|d| d.nameservers.as_ref());
    let Some(servers) = servers else {
        return vec![];
    };
    let field = c.root.child("dnsConfig.nameservers");
    let mut causes = Vec::new();
    if servers.len() > MOST_NAME_SERVERS {
        causes.push(Cause::invalid(
            &field,
            format!(
                "must not have more than {MOST_NAME_SERVERS} nameservers: {}",
                servers.join(" ")
            ),
        ));
    }
    for (i, server) in servers.iter().enumerate() {
        if server.parse::<std::net::IpAddr>().is_err() {
            causes.push(Cause::invalid(
                &field.index(i),
                format!("must be valid IP address: {server}"),
            ));
        }
    }
    causes
}

/// 54, 55, 56: at most six search domains, 256 characters in all, each a DNS subdomain.
fn search_domains(c: &Candidate<'_>) -> Vec<Cause> {
    let domains = c.spec.dns_config.as_ref().and_then(|d| d.searches.as_ref());
    let Some(domains) = domains else {
        return vec![];
    };
    let field = c.root.child("dnsConfig.searches");
    let mut causes = Vec::new();
    if domains.len() > MOST_SEARCH_DOMAINS {
        causes.push(Cause::invalid(
            &field,
            format!("must not have more than {MOST_SEARCH_DOMAINS} search paths"),
        ));
    }
    if domains.join(" ").len() > LONGEST_SEARCH_LIST {
        causes.push(Cause::invalid(
            &field,
            format!("must not have more than {LONGEST_SEARCH_LIST} characters (including spaces) in the search list"),
        ));
    }
    for (i, domain) in domains.iter().enumerate() {
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        if !syntax::is_dns_subdomain(domain) {
            causes.push(Cause::invalid(
                &field.index(i),
                syntax::DNS_SUBDOMAIN_MESSAGE,
            ));
        }
    }
    causes
}

/// 57: DNS options have names.
fn dns_options(c: &Candidate<'_>) -> Vec<Cause> {
    let options = c
        .spec
        .dns_config
        .iter()
        .flat_map(|d| d.options.iter().flatten());
    let field = c.root.child("dnsConfig.options");
    options
        .enumerate()
        .filter(|(_, option)| option.name.as_ref().is_none_or(String::is_empty))
        .map(|(i, _)| Cause::invalid(&field.index(i), "Option.Name must not be empty"))
        .collect()
}

/// 59, in part: spread constraints allow some skew and say by which label.
fn spread_constraints(c: &Candidate<'_>) -> Vec<Cause> {
    let field = c.root.child("topologySpreadConstraints");
    let mut causes = Vec::new();
    for (i, constraint) in c
        .spec
        .topology_spread_constraints
        .iter()
        .flatten()
        .enumerate()
    {
        if constraint.max_skew <= 0 {
            let field = field.index(i).child("maxSkew");
            let message = format!(
                "{field}: Invalid value: {}: must be greater than zero",
                constraint.max_skew
            );
            causes.push(Cause::invalid(&field, message));
        }
        if constraint.topology_key.is_empty() {
            let field = field.index(i).child("topologyKey");
            causes.push(Cause::required(
                &field,
                format!("{field}: Required value: can not be empty"),
            ));
        }
    }
    causes
}
