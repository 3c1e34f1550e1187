//! The form of every handle: a part of the database's tables, for those who may use them. Its methods stand beside the tables
//! (`rows`), and no one reaches the pool through it.

/// Declares a handle; a visibility before its name is that of the pool, for a room whose statements stand in several files.
macro_rules! mysql_handle {
    ($(#[$docs:meta])* $pool:vis $name:ident) => {
        $(#[$docs])*
        #[derive(Clone)]
        pub struct $name {
            $pool db: $crate::store::mysql::Db,
        }

        impl $name {
            /// On this database.
            #[must_use]
            pub const fn new(db: $crate::store::mysql::Db) -> Self {
                Self { db }
            }

            /// The same with a longer deadline, for what counts.
            #[must_use]
            pub fn patient(&self) -> Self {
                Self { db: self.db.patient().clone() }
            }
        }
    };
}
pub(crate) use mysql_handle;
