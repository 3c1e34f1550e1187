//! The private database of an environment: as one in production is, not as `seckill dev` starts it.

/// How much memory and log it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseSize {
    /// The defaults, which hold what a quick run writes.
    Quick,
    /// A pool for the pages that a run writes to, and a log that is not full within a measurement.
    Full,
}

impl DatabaseSize {
    /// Options of its command line: the binary log, which each production has (`sync_binlog = 1` is in every private database),
    /// and the sizes. Of the two logs each program knows one: MariaDB the first, MySQL the second.
    pub(super) const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Quick => &["--log-bin=binlog"],
            Self::Full => &[
                "--log-bin=binlog",
                "--innodb-buffer-pool-size=1G",
                "--loose-innodb-log-file-size=1G",
                "--loose-innodb-redo-log-capacity=1G",
            ],
        }
    }
}
