//! What operators ask and command, over HTTP.

mod endpoints;
mod guard;
mod metrics;
mod problem;
mod token;

use std::{fmt, path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};
use http::HeaderName;

use crate::Gate;

pub use token::AdminError;

/// The largest body of a command, in bytes: a key, a network and a note; a larger one is answered 413.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// Tells a client that it has found what it looks for.
const HEADER: HeaderName = HeaderName::from_static("hotgate-admin");

/// Builds the router by which operators ask and command a gate; made by [`Gate::admin_router`].
///
/// `GET status`, `hot` (`?rule=…&limit=…`) and `metrics`; `POST why`, `mode`, `deny`, `allow`, `block`
/// and `lift`, with JSON bodies; see `docs/operating.md`. The command line speaks it:
/// `hotgate --url http://127.0.0.1:9090 status`.
///
/// Every request must bring `Authorization: Bearer` with the token, and come from this machine: from a
/// loopback peer, without a header field of a proxy. From elsewhere it is answered 404, as if nothing
/// were here. So the server must tell the peer, as behind a gate: by
/// `into_make_service_with_connect_info::<SocketAddr>()`, [`GateBuilder::peer`](crate::GateBuilder::peer)
/// or a [`PeerAddr`](crate::PeerAddr).
#[must_use]
pub struct AdminRouter {
    gate: Gate,
    token: token::Source,
    from_anywhere: bool,
}

/// What the handlers share.
#[derive(Clone)]
struct Admin(Arc<Inner>);

struct Inner {
    gate: Gate,
    token: token::Token,
    from_anywhere: bool,
    refused: guard::Refused,
}

impl std::ops::Deref for Admin {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Gate {
    /// A router by which operators ask and command this gate.
    ///
    /// Serve it on a listener of its own, or nest it outside the gate's layer, so that no rule and no
    /// deny list keeps an operator from lifting it:
    ///
    /// ```no_run
    /// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::net::SocketAddr;
    ///
    /// use axum::{Router, routing::get};
    ///
    /// let gate = hotgate::Gate::from_file("hotgate.toml")?;
    /// let admin = gate.admin_router().token_file("/run/secrets/hotgate-admin").build()?;
    /// let app = Router::new()
    ///     .route("/", get(|| async { "a teapot" }))
    ///     .layer(gate.layer())
    ///     .nest("/hotgate", admin); // after the layer: outside of it
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    /// axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn admin_router(&self) -> AdminRouter {
        let token = token::Source::default();
        AdminRouter { gate: self.clone(), token, from_anywhere: false }
    }
}

impl AdminRouter {
    /// Reads the token from a file, once, without the space at its ends.
    ///
    /// Whichever of this and [`token`](Self::token) is called last holds; without either,
    /// `HOTGATE_ADMIN_TOKEN_FILE` names the file, or `HOTGATE_ADMIN_TOKEN` holds the token.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = token::Source::File(path.into());
        self
    }

    /// Takes this token: one drawn at random when the service starts, or from a secret store. One that
    /// is written in the code is no secret.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = token::Source::Text(token.into());
        self
    }

    /// Answers whoever brings the token, from wherever, through whatever proxy. The token then passes
    /// the network: let it be by TLS only.
    pub fn from_anywhere(mut self) -> Self {
        self.from_anywhere = true;
        self
    }

    /// The router, for a service of any state.
    ///
    /// # Errors
    ///
    /// When there is no token, its file cannot be read, it is shorter than 16 bytes or holds what no
    /// header field can.
    pub fn build<S>(self) -> Result<Router<S>, AdminError>
    where
        S: Clone + Send + Sync + 'static,
    {
        let AdminRouter { gate, token, from_anywhere } = self;
        let (token, refused) = (token.read()?, guard::Refused::default());
        let admin = Admin(Arc::new(Inner { gate, token, from_anywhere, refused }));
        let router = Router::new()
            .route("/status", get(endpoints::status))
            .route("/hot", get(endpoints::hot))
            .route("/metrics", get(endpoints::metrics))
            .route("/why", post(endpoints::why))
            .route("/mode", post(endpoints::set_mode))
            .route("/deny", post(endpoints::deny))
            .route("/allow", post(endpoints::allow))
            .route("/block", post(endpoints::block))
            .route("/lift", post(endpoints::lift))
            .fallback(endpoints::nothing_here)
            .method_not_allowed_fallback(endpoints::other_method)
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .layer(middleware::from_fn_with_state(admin.clone(), guard::guard))
            .with_state(admin);
        Ok(router)
    }
}

/// Does not show the token.
impl fmt::Debug for AdminRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminRouter")
            .field("gate", &self.gate)
            .field("from_anywhere", &self.from_anywhere)
            .finish_non_exhaustive()
    }
}
