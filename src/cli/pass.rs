//! `seckill pass issue`: passes for many buyers, signed with the first of `passes.secrets`.
//!
//! Input: a file with a line of JSON for each pass. Output: a line for each pass, on standard output. The file is read twice, and all of
//! it is checked before the first pass is printed. No server is asked. A crash leaves what was printed, and those passes are good.

use super::failure::Failure;
use super::{context, output};
use crate::buyers::forms::{NewPass, PassForm};
use crate::buyers::passes::{PassIssuer, new_jti};
use crate::config::Layers;
use crate::runtime::now_ms;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longest line, bytes: twice what a pass may say.
const LINE_BYTES_MAX: u64 = 16_384;
/// Bad lines that are named.
const NAMED_MAX: usize = 10;

/// `seckill pass …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum PassCommand {
    /// Sign a pass for each line of a file, with the first of passes.secrets; prints a line of JSON for each
    ///
    /// A line is {"sub": BUYER, "drop": DROP or "sale": SALE, facts, "valid_s": SECONDS or "exp": UNIX SECONDS}. All lines are checked
    /// before the first pass is printed.
    #[command(after_help = "Example of a line:
  {\"sub\": \"u4711\", \"drop\": \"sneaker\", \"tier\": \"gold\", \"valid_s\": 604800}
prints:
  {\"sub\":\"u4711\",\"drop\":\"sneaker\",\"exp\":1803600000,\"jti\":\"9f…\",\"pass\":\"eyJ…\"}")]
    Issue {
        /// The file, a line of JSON for each pass
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
}

/// The lines of a file that are not blank.
struct PassLines {
    reader: BufReader<File>,
    number: u64,
}

/// A pass, or what is wrong with its line.
type OfLine = (u64, Result<NewPass, String>);

impl PassLines {
    fn open(file: &Path) -> Result<Self, Failure> {
        let unusable = |why: String| Failure::Usage(format!("--file: {}: {why}", file.display()));
        let opened = File::open(file).map_err(|error| unusable(error.to_string()))?;
        let is_file = opened.metadata().is_ok_and(|metadata| metadata.is_file());
        if !is_file {
            return Err(unusable("is no regular file, expected one: it is read twice".to_owned()));
        }
        Ok(Self { reader: BufReader::new(opened), number: 0 })
    }

    /// The next pass; `None` at the end.
    fn next(&mut self, now_s: i64) -> std::io::Result<Option<OfLine>> {
        loop {
            let mut line = Vec::new();
            if (&mut self.reader).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if line.len() as u64 > LINE_BYTES_MAX {
                self.skip_rest()?;
                return Ok(Some((
                    self.number,
                    Err(format!("has more than {LINE_BYTES_MAX} bytes, which no pass has")),
                )));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some((self.number, read(&line, now_s))));
            }
        }
    }

    fn skip_rest(&mut self) -> std::io::Result<()> {
        loop {
            let buffer = self.reader.fill_buf()?;
            let (taken, is_end) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.reader.consume(taken);
            if is_end {
                return Ok(());
            }
        }
    }
}

fn read(line: &[u8], now_s: i64) -> Result<NewPass, String> {
    let form: PassForm = serde_json::from_slice(line).map_err(|error| {
        // Each is line 1 to the parser.
        let words = error.to_string().replace(" at line 1 column", ", column").replace(" at line 2 column", ", column");
        format!("{words}; expected {{\"sub\": …, \"drop\" or \"sale\": …, facts, \"valid_s\" or \"exp\": …}}")
    })?;
    form.checked(now_s, new_jti).map_err(|bad| bad.to_string())
}

pub(super) fn run(layers: &Layers, data_dir: &Path, command: PassCommand) -> Result<u8, Failure> {
    let PassCommand::Issue { file } = command;
    let settings = context::settings(layers, data_dir)?;
    let issuer = PassIssuer::new(&settings.passes).map_err(|error| Failure::Usage(error.to_string()))?;
    let now_s = now_ms() / 1000;
    let count = checked(&file, now_s)?;
    let (mut lines, mut issued) = (PassLines::open(&file)?, 0);
    while let Some((number, pass)) = lines.next(now_s)? {
        let changed = |why: String| {
            Failure::Failed(format!(
                "line {number}: {why}; the file was changed meanwhile, {issued} passes were printed"
            ))
        };
        let pass = issuer.issue(&pass.map_err(changed)?).map_err(|error| changed(error.to_string()))?;
        let text = serde_json::to_string(&pass).map_err(|error| Failure::Failed(error.to_string()))?;
        output::line(&text);
        if output::is_lost() {
            output::remark(&format!("{issued} of {count} passes were printed, then standard output took no more"));
            return Ok(0);
        }
        issued += 1;
    }
    output::remark(&format!("{issued} passes issued"));
    Ok(0)
}

/// How many passes a file asks for, if each of its lines can be used.
fn checked(file: &Path, now_s: i64) -> Result<u64, Failure> {
    let (mut lines, mut count, mut bad) = (PassLines::open(file)?, 0, Vec::new());
    while let Some((number, pass)) = lines.next(now_s)? {
        match pass {
            Ok(_) => count += 1,
            Err(why) => bad.push(format!("line {number}: {why}")),
        }
        if bad.len() == NAMED_MAX {
            bad.push("and perhaps more".to_owned());
            break;
        }
    }
    let name = file.display();
    match (bad.is_empty(), count) {
        (false, _) => Err(Failure::Usage(format!("--file: {name}: no pass was issued\n  {}", bad.join("\n  ")))),
        (true, 0) => Err(Failure::Usage(format!("--file: {name}: has no line, expected one for each pass"))),
        (true, _) => Ok(count),
    }
}
