//! stub
use super::Failure;
use crate::config::Layers;
use std::path::Path;
/// `seckill bench`
#[derive(Debug, clap::Args)]
pub(super) struct Args {}
pub(super) async fn run(_layers: &Layers, _data_dir: &Path, _args: &Args) -> Result<u8, Failure> {
    Ok(0)
}
