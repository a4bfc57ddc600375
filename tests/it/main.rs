//! Hotgate against real routers, servers and data: one binary.

mod routes;
