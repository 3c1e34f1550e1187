//! The processes that a rush comes from: as many as the limit of open files needs.
//!
//! Each gets its part on standard input, signs its tokens, says that it is ready, waits for the time to begin, and prints
//! what its buyers saw. A crash of this process ends those that wait (their input ends); those under way end by themselves.

use super::buyers::{Rush, RushPlan};
use super::seen::Seen;
use crate::cpu::LOAD;
use crate::descriptors;
use crate::environment::Environment;
use seckill::cli::{Failure, output};
use seckill::domain::ids::SaleId;
use seckill::runtime::{Stopper, now_ms};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

const READY: &str = "ready";
/// From the word to the beginning, ms: until every process has it.
const LEAD_MS: i64 = 200;
/// Tokens are signed and the word is given within this time.
const PREPARES: Duration = Duration::from_secs(120);
/// The last buyer has given up and everything is reported within this time.
const ENDS: Duration = Duration::from_secs(120);

/// One process.
struct Generator {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// All of them, ready to begin.
pub(super) struct Generators(Vec<Generator>);

impl Generators {
    /// Starts as many as are needed for `buyers`; returns when all are ready.
    pub async fn start(environment: &mut Environment, sale: &SaleId, buyers: u64) -> Result<Self, Failure> {
        let processes = buyers.div_ceil(descriptors::buyers_of_a_process(buyers)?);
        let share = buyers.div_ceil(processes);
        let auth = environment.settings.auth.clone();
        let (mut all, mut left, mut addresses_before) = (Vec::new(), buyers, 0);
        while left > 0 {
            let part = share.min(left);
            let plan = RushPlan {
                api_url: environment.api.clone(),
                sale: sale.clone(),
                secret: auth.secret.expose().to_owned(),
                issuer: auth.issuer.clone(),
                audience: auth.audience.clone(),
                buyers: part,
                first: environment.numbers(part),
                addresses_before,
            };
            all.push(Generator::start(&plan).await?);
            left -= part;
            addresses_before += RushPlan::addresses(part);
        }
        for generator in &mut all {
            generator.ready().await?;
        }
        Ok(Self(all))
    }

    /// Their names and process ids.
    pub fn pids(&self) -> Vec<(String, u32)> {
        let name = |at| if at == 0 { LOAD.to_owned() } else { format!("{LOAD} {}", at + 1) };
        self.0.iter().enumerate().filter_map(|(at, one)| Some((name(at), one.process.id()?))).collect()
    }

    /// Lets all begin at one time; returns what everybody saw. They live until this is dropped, so that their processor time can
    /// be read.
    pub async fn run(&mut self) -> Result<Vec<Seen>, Failure> {
        let begin = now_ms() + LEAD_MS;
        for generator in &mut self.0 {
            generator.input.write_all(format!("{begin}\n").as_bytes()).await?;
        }
        let mut seen = Vec::new();
        for generator in &mut self.0 {
            let line = generator.line(ENDS).await?;
            let part: Vec<Seen> = serde_json::from_str(&line).map_err(|error| Failure::Failed(error.to_string()))?;
            seen.extend(part);
        }
        Ok(seen)
    }
}

impl Generator {
    async fn start(plan: &RushPlan) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("rush").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let gone = || Failure::Failed("rush: a process of buyers has no pipe".to_owned());
        let (mut input, output) = (process.stdin.take().ok_or_else(gone)?, process.stdout.take().ok_or_else(gone)?);
        let plan = serde_json::to_string(plan).map_err(|error| Failure::Failed(error.to_string()))?;
        input.write_all(format!("{plan}\n").as_bytes()).await?;
        Ok(Self { process, input, output: BufReader::new(output).lines() })
    }

    async fn ready(&mut self) -> Result<(), Failure> {
        let said = self.line(PREPARES).await?;
        if said == READY { Ok(()) } else { Err(Failure::Failed(format!("rush: a process of buyers said {said}"))) }
    }

    async fn line(&mut self, within: Duration) -> Result<String, Failure> {
        let line = timeout(within, self.output.next_line()).await;
        let line = line.map_err(|_| Failure::Failed("rush: a process of buyers says nothing".to_owned()))??;
        line.ok_or_else(|| Failure::Failed("rush: a process of buyers ended early".to_owned()))
    }
}

/// Such a process.
pub(crate) async fn serve() -> Result<u8, Failure> {
    let plan = next_line()?;
    let plan: RushPlan = serde_json::from_str(&plan).map_err(|error| Failure::Usage(format!("the plan: {error}")))?;
    let rush = Rush::prepare(plan, Stopper::new()).await?;
    output::line(READY);
    let begin = next_line()?;
    let begin: i64 = begin.parse().map_err(|_| Failure::Usage(format!("{begin} is no time")))?;
    tokio::time::sleep(Duration::from_millis(u64::try_from(begin - now_ms()).unwrap_or(0))).await;
    let seen = rush.run().await;
    output::line(&serde_json::to_string(&seen).map_err(|error| Failure::Failed(error.to_string()))?);
    // Kept until the end of the input, and nothing more comes.
    drop(next_line());
    Ok(0)
}

/// The next line of the input. Nothing else is to be done meanwhile.
fn next_line() -> Result<String, Failure> {
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line)? == 0 {
        return Err(Failure::Usage("the input ended early".to_owned()));
    }
    Ok(line.trim_end().to_owned())
}
