//! One check: its value, the expected one, the verdict, and what to change.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckVerdict {
    Fine,
    /// Worth knowing; no guarantee of the default installation breaks by itself.
    Warning,
    /// A guarantee breaks.
    Wrong,
    /// The server did not answer.
    Away,
}

impl CheckVerdict {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Warning => "WARNING",
            Self::Wrong => "WRONG",
            Self::Away => "AWAY",
        }
    }
}

/// What a line expects that judges nothing.
const INFORMATION: &str = "for information";

/// One check of a server.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DoctorCheck {
    pub server: &'static str,
    pub name: String,
    pub value: String,
    pub expected: String,
    pub verdict: CheckVerdict,
    pub why: String,
    pub change: String,
}

impl DoctorCheck {
    pub(super) fn new(
        server: &'static str,
        name: impl Into<String>,
        value: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let (name, value, expected) = (name.into(), value.into(), expected.into());
        Self { server, name, value, expected, verdict: CheckVerdict::Fine, why: String::new(), change: String::new() }
    }

    pub(super) fn judged(mut self, ok: bool, otherwise: CheckVerdict, why: &str, change: &str) -> Self {
        self.verdict = if ok { CheckVerdict::Fine } else { otherwise };
        why.clone_into(&mut self.why);
        change.clone_into(&mut self.change);
        self
    }

    /// A line that judges nothing, with what to run to learn more.
    pub(super) fn noted(mut self, why: &str, change: &str) -> Self {
        INFORMATION.clone_into(&mut self.expected);
        why.clone_into(&mut self.why);
        change.clone_into(&mut self.change);
        self
    }

    pub(super) fn is_note(&self) -> bool {
        self.expected == INFORMATION && !self.change.is_empty()
    }

    pub(super) fn away(server: &'static str, error: &impl ToString) -> Self {
        let why = error.to_string();
        Self::new(server, "answers", "no", "yes").judged(
            false,
            CheckVerdict::Away,
            &why,
            "start it, or correct its url",
        )
    }

    pub(crate) fn headline(&self) -> String {
        format!("{} is {}, expected {}", self.name, self.value, self.expected)
    }
}

/// How many entries a dead-letter queue has.
pub(super) fn dlq_check(server: &'static str, name: String, parked: u64) -> DoctorCheck {
    DoctorCheck::new(server, name, parked.to_string(), "0").judged(
        parked == 0,
        CheckVerdict::Warning,
        "these accepted requests could not go on by themselves",
        "seckill dlq list, then seckill dlq replay or give-up",
    )
}

/// Whether `version` (its leading numbers) is at least `least`.
pub(super) fn at_least(version: &str, least: [u32; 2]) -> bool {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)] >= least
}

#[cfg(test)]
mod tests {
    use super::at_least;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(at_least("7.0.15", [7, 0]));
        assert!(at_least("10.11.6-MariaDB-0+deb12u1", [10, 6]));
        assert!(at_least("3.10.8", [3, 9]));
        assert!(!at_least("3.8.9", [3, 10]));
        assert!(!at_least("", [1, 0]));
    }
}
