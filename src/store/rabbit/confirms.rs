//! Which publishes the broker has answered for. Pure: no clock, no I/O; owned by one [`super::Publisher`]'s life, so tags
//! of an earlier connection cannot be mixed with these.

use super::publisher::{PublishEvent, Tag};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The broker's answer for one publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishResult {
    /// Stored by every queue it was routed to.
    Confirmed,
    /// Refused by the broker: try again later.
    Refused,
    /// No queue to put it into; holds the broker's words. Trying again helps once the topology is whole.
    Unroutable(String),
}

struct UnconfirmedPublish<T> {
    item: T,
    at: Instant,
    /// The reason of a `basic.return`. It comes before the ack of the same tag, which then means nothing.
    returned: Option<String>,
}

/// Publishes without an answer yet, by tag. The caller bounds their number (its window).
pub struct Confirms<T> {
    open: BTreeMap<Tag, UnconfirmedPublish<T>>,
}

impl<T> Default for Confirms<T> {
    fn default() -> Self {
        Self { open: BTreeMap::new() }
    }
}

impl<T> Confirms<T> {
    /// Without messages under way.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many publishes have no answer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether every publish has its answer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Notes a publish that [`super::Publisher::publish`] gave this tag.
    pub fn sent(&mut self, tag: Tag, item: T, now: Instant) {
        let previous = self.open.insert(tag, UnconfirmedPublish { item, at: now, returned: None });
        debug_assert!(previous.is_none(), "tag {tag} was given twice");
    }

    /// An ack: returns the items it answers for, oldest first. Unroutable ones are among them, as such.
    pub(crate) fn ack(&mut self, tag: Tag, multiple: bool) -> Vec<(T, PublishResult)> {
        self.resolve(tag, multiple, &PublishResult::Confirmed)
    }

    /// A nack: returns the items it answers for, oldest first.
    pub(crate) fn nack(&mut self, tag: Tag, multiple: bool) -> Vec<(T, PublishResult)> {
        self.resolve(tag, multiple, &PublishResult::Refused)
    }

    /// A returned message. Its ack is still to come, and will count as a failure.
    pub(crate) fn returned(&mut self, tag: Tag, reason: String) {
        if let Some(sent) = self.open.get_mut(&tag) {
            sent.returned = Some(reason);
        }
    }

    /// Any event: the three above in one. [`PublishEvent::Closed`] answers for nothing; use [`Confirms::drain`] then.
    pub fn apply(&mut self, event: PublishEvent) -> Vec<(T, PublishResult)> {
        match event {
            PublishEvent::Ack { tag, multiple } => self.ack(tag, multiple),
            PublishEvent::Nack { tag, multiple } => self.nack(tag, multiple),
            PublishEvent::Returned { tag, reason } => {
                self.returned(tag, reason);
                Vec::new()
            }
            PublishEvent::Closed(_) => Vec::new(),
        }
    }

    /// Whether the oldest publish has waited longer than `limit`. Then the whole connection is to be given up: one that
    /// lost a confirm cannot be trusted with the others.
    #[must_use]
    pub(crate) fn expired(&self, now: Instant, limit: Duration) -> bool {
        self.open.first_key_value().is_some_and(|(_, sent)| now.saturating_duration_since(sent.at) > limit)
    }

    /// Gives up: returns every item without an answer, oldest first. The broker may have stored any of them.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        std::mem::take(&mut self.open).into_values().map(|sent| sent.item).collect()
    }

    fn resolve(&mut self, tag: Tag, multiple: bool, verdict: &PublishResult) -> Vec<(T, PublishResult)> {
        let resolved = if multiple {
            let later = tag.checked_add(1).map_or_else(BTreeMap::new, |next| self.open.split_off(&next));
            std::mem::replace(&mut self.open, later)
        } else {
            self.open.remove_entry(&tag).into_iter().collect()
        };
        let judge = |sent: UnconfirmedPublish<T>| match sent.returned {
            Some(reason) => (sent.item, PublishResult::Unroutable(reason)),
            None => (sent.item, verdict.clone()),
        };
        resolved.into_values().map(judge).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum ConfirmStep {
        Send,
        Ack(u64, bool),
        Nack(u64, bool),
        Return(u64),
        Reconnect,
    }

    fn any_step() -> impl Strategy<Value = ConfirmStep> {
        prop_oneof![
            3 => Just(ConfirmStep::Send),
            2 => (0u64..24, any::<bool>()).prop_map(|(tag, multiple)| ConfirmStep::Ack(tag, multiple)),
            1 => (0u64..24, any::<bool>()).prop_map(|(tag, multiple)| ConfirmStep::Nack(tag, multiple)),
            1 => (0u64..24).prop_map(ConfirmStep::Return),
            1 => Just(ConfirmStep::Reconnect),
        ]
    }

    /// The naive model: a list of everything sent on this connection, whether it was returned, and its answer.
    #[derive(Default)]
    struct ListModel(Vec<(bool, Option<PublishResult>)>);

    impl ListModel {
        fn unanswered(&self) -> Vec<u64> {
            (1..).zip(&self.0).filter(|(_, (_, answer))| answer.is_none()).map(|(tag, _)| tag).collect()
        }

        fn resolve(&mut self, tag: u64, multiple: bool, verdict: &PublishResult) -> Vec<(u64, PublishResult)> {
            let mut resolved = Vec::new();
            for (index, (returned, answer)) in self.0.iter_mut().enumerate() {
                let own = index as u64 + 1;
                if answer.is_none() && (own == tag || multiple && own < tag) {
                    let verdict = if *returned { PublishResult::Unroutable("r".to_owned()) } else { verdict.clone() };
                    *answer = Some(verdict.clone());
                    resolved.push((own, verdict));
                }
            }
            resolved
        }
    }

    proptest! {
        #[test]
        fn it_answers_as_a_plain_list_would(steps in prop::collection::vec(any_step(), 0..80)) {
            let now = Instant::now();
            let (mut confirms, mut model) = (Confirms::new(), ListModel::default());
            // Tags begin at 1 again with every connection: an item that survived would be answered for another one.
            for step in steps {
                match step {
                    ConfirmStep::Send => {
                        model.0.push((false, None));
                        let tag = model.0.len() as u64;
                        confirms.sent(tag, tag, now);
                    }
                    ConfirmStep::Ack(tag, multiple) => {
                        let expected = model.resolve(tag, multiple, &PublishResult::Confirmed);
                        prop_assert_eq!(confirms.apply(PublishEvent::Ack { tag, multiple }), expected);
                    }
                    ConfirmStep::Nack(tag, multiple) => {
                        let expected = model.resolve(tag, multiple, &PublishResult::Refused);
                        prop_assert_eq!(confirms.apply(PublishEvent::Nack { tag, multiple }), expected);
                    }
                    ConfirmStep::Return(tag) => {
                        confirms.returned(tag, "r".to_owned());
                        if let Some(sent) = model.0.get_mut(usize::try_from(tag).unwrap().wrapping_sub(1)) {
                            sent.0 = true;
                        }
                    }
                    ConfirmStep::Reconnect => {
                        prop_assert_eq!(confirms.drain(), model.unanswered());
                        model = ListModel::default();
                    }
                }
                let open = model.0.iter().filter(|(_, answer)| answer.is_none()).count();
                prop_assert_eq!(confirms.len(), open);
            }
            prop_assert_eq!(confirms.drain(), model.unanswered());
            prop_assert!(confirms.is_empty());
        }
    }

    #[test]
    fn only_the_oldest_decides_whether_something_expired() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut confirms = Confirms::new();
        assert!(!confirms.expired(start + second * 9, second));
        confirms.sent(1, "a", start);
        confirms.sent(2, "b", start + second);
        assert!(!confirms.expired(start + second, second));
        assert!(confirms.expired(start + second * 2, second));
        assert_eq!(confirms.ack(1, false), [("a", PublishResult::Confirmed)]);
        assert!(!confirms.expired(start + second * 2, second));
    }
}
