//! Questions at a server that are under way side by side.

use super::hands::Context;

/// Questions about one request at one server. Of several at once it is not known which one an answer is for.
#[derive(Default)]
pub struct Questions {
    /// How many have no answer yet.
    open: usize,
    /// Where the questions are since all of them had one.
    places: Vec<usize>,
}

impl Questions {
    /// One more; `place`: its line.
    pub fn ask(&mut self, place: usize) {
        self.open += 1;
        self.places.push(place);
    }

    /// After which line the answered step happened. What has no known answer may have happened as early as the first of them.
    pub fn answer(&mut self, is_known: bool, contexts: &mut [Context]) -> Option<u64> {
        self.open = self.open.checked_sub(1)?;
        let first = *self.places.first()?;
        if is_known && let Some(last) = self.places.iter().rev().find(|place| !contexts[**place].answered) {
            contexts[*last].answered = true;
        }
        if self.open == 0 {
            self.places.clear();
        }
        Some(contexts[first].from)
    }
}
