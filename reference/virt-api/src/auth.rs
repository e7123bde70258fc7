//! Who calls, and whether they may: identities that the aggregation layer vouches for, then a
//! SubjectAccessReview.
//!
//! Whoever reaches the port can send `X-Remote-User: admin`. The headers count only on a connection
//! whose client certificate the front proxy's CA signed, with a name that the cluster allows; while
//! the cluster's terms are not known, nobody is trusted.

mod follow;
mod headers;

use std::sync::{Arc, PoisonError, RwLock};

use axum::http::HeaderMap;
pub use follow::{PART, follow};
pub use headers::{FrontProxy, Identity, TermsError, terms};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::{Api, Client, api::PostParams};
use thiserror::Error;
use virt_kit::serve::PeerIdentity;

/// What is to be done with which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action<'a> {
    /// `get` or `update`.
    pub verb: &'static str,
    /// Version of the group in the path.
    pub version: &'a str,
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Plural name of the kind.
    pub resource: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// The part of the object that is called.
    pub subresource: &'a str,
}

/// Why a call is not let through.
#[derive(Debug, Error)]
pub enum AuthError {
    /// Nobody vouches for the caller.
    #[error("{0}")]
    Unknown(&'static str),
    /// The caller may not do this.
    #[error("{0}")]
    Denied(String),
    /// The API server could not be asked.
    #[error("failed to review access")]
    Review(#[source] kube::Error),
}

/// The guard of the subresources. Clones share what they know.
#[derive(Clone)]
pub struct Gate {
    client: Client,
    terms: Arc<RwLock<Option<FrontProxy>>>,
}

impl Gate {
    /// A guard that trusts nobody yet.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            terms: Arc::default(),
        }
    }

    fn set_terms(&self, terms: Option<FrontProxy>) {
        *self.terms.write().unwrap_or_else(PoisonError::into_inner) = terms;
    }

    /// Lets a call through, or says why not.
    pub async fn check(
        &self,
        peer: &PeerIdentity,
        headers: &HeaderMap,
        action: &Action<'_>,
    ) -> Result<(), AuthError> {
        let identity = {
            let terms = self.terms.read().unwrap_or_else(PoisonError::into_inner);
            let terms = terms.as_ref().ok_or(AuthError::Unknown(
                "the front proxy's terms are not known yet",
            ))?;
            terms.identify(peer, headers).map_err(AuthError::Unknown)?
        };
        let review = Api::all(self.client.clone())
            .create(&PostParams::default(), &review(identity, action))
            .await
            .map_err(AuthError::Review)?;
        let status = review.status.unwrap_or_default();
        if status.allowed {
            return Ok(());
        }
        let reason = status.reason.filter(|reason| !reason.is_empty());
        Err(AuthError::Denied(reason.unwrap_or_else(|| {
            format!(
                "{} of {}/{} is not allowed",
                action.verb, action.resource, action.subresource
            )
        })))
    }
}

fn review(identity: Identity, action: &Action<'_>) -> SubjectAccessReview {
    let text = |text: &str| Some(text.to_owned());
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(identity.user),
            groups: Some(identity.groups),
            extra: Some(identity.extra),
            uid: identity.uid,
            resource_attributes: Some(ResourceAttributes {
                group: text(kubevirt_api::names::SUBRESOURCE_GROUP),
                version: text(action.version),
                namespace: text(action.namespace),
                resource: text(action.resource),
                subresource: text(action.subresource),
                name: text(action.name),
                verb: text(action.verb),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}
