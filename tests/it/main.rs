//! Hotgate against real routers, servers and data: one binary.

mod docs;
mod routes;
