use axum::{Extension, Router, routing::get};
use hotgate::{Gate, Peer, PeerAddr};
use tokio::net::UnixListener;

fn app(gate: &Gate) -> Router {
    Router::new()
        .route("/", get(|| async { "a teapot" }))
        .layer(gate.layer())
        .layer(Extension(PeerAddr(Peer::Unix))) // outside of the gate, which reads it
}

async fn serve(listener: UnixListener, gate: Gate) -> std::io::Result<()> {
    axum::serve(listener, app(&gate)).await
}
