//! The names of grants: those that the system gives itself, and how long a name may be.

/// The grant a sale is created with; the first warm-up applies it.
pub(crate) const FIRST_GRANT: &str = "first";
/// Longest name of a grant, bytes: its column's.
pub(crate) const NAME_BYTES_MAX: usize = 64;
/// Before the name of a withdrawal, in the grant of less than nothing that it is.
pub(crate) const WITHDRAWAL: &str = "withdraw-";
/// Before the name of a move, in the grant that its target gets.
pub(crate) const MOVE: &str = "move-";
/// Before the number of a release, in the grant that it is.
pub(crate) const RELEASE: &str = "release-";
/// Before the number of a rollover, in the name of the move that it is.
pub(crate) const ROLLOVER: &str = "rollover-";
/// Longest name of a withdrawal or a move, bytes: a grant has it behind a prefix.
pub(crate) const WITHDRAWAL_NAME_BYTES_MAX: usize = NAME_BYTES_MAX - WITHDRAWAL.len();
/// Names that grants of the system begin with.
const RESERVED: [&str; 10] =
    [FIRST_GRANT, RELEASE, ROLLOVER, "reclaim-", "void-", "cancel-", "return-", "rebuild-", WITHDRAWAL, MOVE];

/// Whether the system gives such names itself.
pub(crate) fn is_reserved(grant_id: &str) -> bool {
    RESERVED.iter().any(|prefix| grant_id.starts_with(prefix))
}

/// What a name may not begin with, as a list whose last two parts are joined by `or`.
pub(crate) fn reserved(comma: &str, or: &str) -> String {
    let [others @ .., last] = RESERVED;
    format!("{}{or}{last}", others.join(comma))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reserved_name_is_in_the_list_that_people_read() {
        assert!(is_reserved("first") && is_reserved("move-x") && is_reserved("withdraw-x") && !is_reserved("a-move-"));
        let list = reserved(", ", " or ");
        assert_eq!(list, "first, release-, rollover-, reclaim-, void-, cancel-, return-, rebuild-, withdraw- or move-");
    }
}
