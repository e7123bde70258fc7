//! The protocol between virt-handler and virt-launcher: gRPC over a unix socket.
