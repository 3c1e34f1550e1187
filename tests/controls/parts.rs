//! The scenes in several processes: a switch and a hold are of the whole process, and a scene mostly waits. So the process that was
//! started plays none. It starts a few of its own kind, each with servers of its own and a part of the scenes, and each test says
//! what became of its scene there.
//!
//! Input: the filter that this process was started with. Output: the children's verdicts: a file has a line for each scene that
//! ended, whatever the test runner prints. A process that is killed leaves children that end by themselves.

use crate::support::basics::files::empty;
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::thread;

/// Processes that play scenes. More of them wait for processors.
const PARTS: usize = 3;
/// Says to a process which part is its own, and where it writes how its scenes ended.
const PART: &str = "CONTROLS_PART";
const VERDICTS: &str = "CONTROLS_VERDICTS";
/// Longest part of what a child said about a scene that is passed on, bytes.
const SAID_MAX: usize = 20_000;

/// What became of the scenes of one part.
struct Played {
    verdicts: HashSet<String>,
    out: String,
    status: ExitStatus,
}

/// Played by all children, once for all tests.
static PLAYED: LazyLock<Vec<Played>> = LazyLock::new(|| {
    let children: Vec<_> = (0..PARTS).map(|part| thread::spawn(move || of_child(part))).collect();
    children.into_iter().map(|child| child.join().expect("a child that was started")).collect()
});

/// Starts a child and waits for its end; its log is this process's.
fn of_child(part: usize) -> Played {
    let file = empty(&format!("controls-part-{part}")).join("verdicts");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(std::env::args_os().skip(1))
        .env(PART, part.to_string())
        .env(VERDICTS, &file)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("a process of our own kind");
    let verdicts = std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect();
    Played { verdicts, out: String::from_utf8_lossy(&output.stdout).into_owned(), status: output.status }
}

/// The scene of this test is in this part.
fn part_of(test: &str) -> usize {
    let hash = test.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    hash % PARTS
}

/// Plays the scene of the running test, in the process whose part it is. Elsewhere waits for that, and fails as it did.
pub fn play(scene: impl FnOnce()) {
    let test = thread::current().name().expect("a test's thread").to_owned();
    let own = std::env::var(PART).ok().map(|part| part.parse::<usize>().expect("a number"));
    match own {
        Some(part) if part == part_of(&test) => {
            let _verdict = Verdict(&test);
            scene();
        }
        Some(_) => {}
        None => says(&test, &PLAYED[part_of(&test)]),
    }
}

/// Written down when its scene ends. A test may have several; each must end well.
struct Verdict<'a>(&'a str);

impl Verdict<'_> {
    fn line(test: &str, is_red: bool) -> String {
        format!("{test} {}", if is_red { "red" } else { "green" })
    }
}

impl Drop for Verdict<'_> {
    fn drop(&mut self) {
        let file = std::env::var_os(VERDICTS).expect("a file");
        let mut file = OpenOptions::new().create(true).append(true).open(file).expect("a file");
        // One write: others append at the same time.
        let line = Self::line(self.0, thread::panicking()) + "\n";
        file.write_all(line.as_bytes()).expect("written");
    }
}

fn says(test: &str, played: &Played) {
    let has = |is_red| played.verdicts.contains(&Verdict::line(test, is_red));
    if has(false) && !has(true) {
        return;
    }
    let begin = played.out.find(&format!("---- {test} stdout ----")).unwrap_or(0);
    let said = played.out.get(begin..).unwrap_or_default();
    let end = said.get(1..).and_then(|rest| rest.find("\n---- ")).map_or(said.len(), |end| end + 1);
    let said: String = said.get(..end).unwrap_or_default().chars().take(SAID_MAX).collect();
    panic!("the process that played it ended with {}: {said}", played.status);
}
