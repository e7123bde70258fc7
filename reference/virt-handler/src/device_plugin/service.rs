//! The gRPC face of one plugin, as the kubelet calls it.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{
    api::{
        AllocateRequest, AllocateResponse, DevicePluginOptions, Empty, ListAndWatchResponse,
        PreStartContainerRequest, PreStartContainerResponse, PreferredAllocationRequest,
        PreferredAllocationResponse, device_plugin_server::DevicePlugin,
    },
    resource::DeviceResource,
};

/// Answers the kubelet for one resource until `token` is cancelled.
#[derive(Clone, Debug)]
pub struct PluginService {
    /// What is advertised.
    pub resource: DeviceResource,
    /// Whether the device file exists.
    pub healthy: watch::Receiver<bool>,
    /// Ends the open streams, so that the server can stop.
    pub token: CancellationToken,
}

type DeviceStream = Pin<Box<dyn Stream<Item = Result<ListAndWatchResponse, Status>> + Send>>;

#[tonic::async_trait]
impl DevicePlugin for PluginService {
    type ListAndWatchStream = DeviceStream;

    async fn get_device_plugin_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DevicePluginOptions>, Status> {
        Ok(Response::new(DevicePluginOptions::default()))
    }

    async fn list_and_watch(&self, _: Request<Empty>) -> Result<Response<DeviceStream>, Status> {
        let resource = self.resource.clone();
        let lists = WatchStream::new(self.healthy.clone())
            .map(move |healthy| {
                Ok(ListAndWatchResponse {
                    devices: resource.devices(healthy),
                })
            })
            .take_until(self.token.clone().cancelled_owned());
        Ok(Response::new(Box::pin(lists)))
    }

    async fn get_preferred_allocation(
        &self,
        _: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        Ok(Response::new(PreferredAllocationResponse::default()))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let container_responses = request
            .into_inner()
            .container_requests
            .iter()
            .map(|_| self.resource.allocation())
            .collect();
        Ok(Response::new(AllocateResponse {
            container_responses,
        }))
    }

    async fn pre_start_container(
        &self,
        _: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        Ok(Response::new(PreStartContainerResponse::default()))
    }
}
