//! A plain Actix handler that checks the access token and refuses: what any front on this machine has to do for a request,
//! with nothing behind it. It runs in the benchmark's process, and for `cost` in one of its own.

use super::closed_loop::{ResponseCounts, closed_loop};
use super::environment::Environment;
use super::sizes::Sizes;
use crate::baseline::http as bare;
use crate::loadgen::Answers;
use seckill::cli::Failure;
use seckill::p1_entry::access_tokens::Authenticator;
use seckill::roles;
use seckill::runtime::Stopper;
use tokio::task::JoinHandle;

/// Has the handler at `url` refuse `requests` for the time of a measurement, whichever process it runs in.
pub(super) async fn refusals(
    url: &str,
    requests: Vec<String>,
    environment: &Environment,
    sizes: &Sizes,
) -> Result<ResponseCounts, Failure> {
    let responses = closed_loop(url, requests, sizes.connections, sizes.lasting, &environment.stop).await?;
    if responses.others(410) > 0 {
        return Err(answered_otherwise(&responses.answers));
    }
    Ok(responses)
}

/// It did something else than refusing.
pub(super) fn answered_otherwise(answers: &Answers) -> Failure {
    Failure::Failed(format!("the plain handler answered otherwise: {:?}", answers.rows()))
}

/// The running handler.
pub(super) struct PlainHandler {
    /// `http://host:port`; every path answers 410.
    pub url: String,
    stopper: Stopper,
    server: JoinHandle<std::io::Result<()>>,
}

impl PlainHandler {
    /// Starts it on a free port, with as many workers as the api role has.
    pub fn start(environment: &Environment) -> Result<Self, Failure> {
        let auth =
            Authenticator::new(&environment.settings.auth).map_err(|error| Failure::Failed(error.to_string()))?;
        let listener = roles::bind("http.listen", "127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let stopper = Stopper::new();
        let server = tokio::spawn(bare::serve(auth, listener, &environment.settings.http, stopper.clone())?);
        Ok(Self { url, stopper, server })
    }

    /// Stops it.
    pub async fn end(self) -> Result<(), Failure> {
        self.stopper.stop();
        self.server.await.map_err(|error| Failure::Failed(error.to_string()))??;
        Ok(())
    }
}
