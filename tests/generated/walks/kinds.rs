//! What distinguishes one step from another: the action and what it changes; and a fault together with what is under way.

use std::fmt::Debug;

/// A kind of step, by its words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepKind {
    /// An action, and each field of the state that it changed, before and after.
    Transition(String),
    /// A fault, and one step that was under way when it came.
    FaultDuring(String, String),
}

/// Changed fields, before and after.
#[derive(Default)]
pub struct Changes(Vec<String>);

impl Changes {
    /// Notes a field, if it has changed.
    pub fn note<T: Debug + PartialEq + Copy>(&mut self, name: &str, from: T, to: T) {
        if from != to {
            self.0.push(format!("{name} {from:?}>{to:?}"));
        }
    }

    /// All of them.
    pub fn said(self) -> String {
        self.0.join(" ")
    }
}

/// An action without the numbers of those who do it.
pub fn word_of(step: &dyn Debug) -> String {
    format!("{step:?}").split('(').next().unwrap_or_default().to_owned()
}
