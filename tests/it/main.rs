//! Hotgate against real routers.
