//! What every component needs: client, leader election, certificates, events, health, logs.
