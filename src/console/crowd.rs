//! The crowd of the demo shop: `seckill-bench crowd`, a process of its own, which knows how to make load.
//!
//! Input: a plan. Output: how far it is, for the page. A crash of this process ends the crowd, as its input ends.

use crate::bench_program;
use crate::runtime::Stopper;
use serde::{Deserialize, Serialize};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

/// A line of what `seckill-bench crowd` says.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CrowdLine {
    Progress(CrowdProgress),
    Answers(Vec<CrowdAnswers>),
}

/// How far a crowd is, in purchases; `requests` counts repeats, too.
#[derive(Default, Clone, Copy, Serialize, Deserialize)]
pub(super) struct CrowdProgress {
    planned: u64,
    finished: u64,
    accepted: u64,
    requests: u64,
}

/// How often one kind of answer came.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct CrowdAnswers {
    status: u16,
    code: String,
    count: u64,
}

/// The crowd under way, or the last one.
#[derive(Default, Clone, Serialize)]
pub(super) struct Crowd {
    pub(super) running: bool,
    pub(super) number: u32,
    pub(super) progress: CrowdProgress,
    /// How the last one ended: answers by status and code.
    pub(super) told: Option<Vec<CrowdAnswers>>,
    pub(super) problem: Option<String>,
}

/// Starts the program; it waits for its plan.
pub(super) fn start() -> std::io::Result<Child> {
    let mut bench = Command::new(bench_program::program());
    bench.arg("crowd").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()
}

/// Hands the plan to the program and reads how far it is, a line of JSON each. It ends early when its input does.
pub(super) async fn follow(mut child: Child, plan: String, crowd: Arc<Mutex<Crowd>>, stop: Stopper) {
    let crowd = || crowd.lock().unwrap_or_else(PoisonError::into_inner);
    let problem = match converse(&mut child, &plan, &stop, |line| match line {
        CrowdLine::Progress(progress) => crowd().progress = progress,
        CrowdLine::Answers(answers) => crowd().told = Some(answers),
    })
    .await
    {
        Ok(problem) => problem,
        Err(error) => Some(error.to_string()),
    };
    let mut crowd = crowd();
    crowd.running = false;
    crowd.problem = problem;
}

async fn converse(
    child: &mut Child,
    plan: &str,
    stop: &Stopper,
    mut take: impl FnMut(CrowdLine),
) -> std::io::Result<Option<String>> {
    let (Some(mut input), Some(output), Some(mut errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Ok(None);
    };
    input.write_all(format!("{plan}\n").as_bytes()).await?;
    let mut input = Some(input);
    let mut lines = BufReader::new(output).lines();
    loop {
        let line = tokio::select! {
            line = lines.next_line() => line?,
            () = stop.stopped(), if input.is_some() => {
                drop(input.take());
                continue;
            }
        };
        let Some(line) = line else { break };
        take(serde_json::from_str(&line)?);
    }
    let mut said = String::new();
    errors.read_to_string(&mut said).await?;
    Ok((!child.wait().await?.success()).then(|| said.trim().to_owned()))
}
