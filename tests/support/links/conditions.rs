//! What a link between a process and a server does to what goes through it.

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OneWayConditions {
    /// Every chunk comes this much later.
    pub delay_ms: u64,
    /// Throughput; 0: no limit.
    pub bytes_per_s: usize,
    /// Nothing goes through, and no side notices; what waits goes on its way when this ends.
    pub black_hole: bool,
    /// What comes is thrown away, and no side notices. A connection that has lost something stays silent after it.
    pub lost: bool,
}

/// Both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkConditions {
    /// From the client.
    pub to_server: OneWayConditions,
    /// From the server.
    pub to_client: OneWayConditions,
    /// All connections are closed, new ones refused.
    pub cut: bool,
    /// What the server says comes this much later on connections that are opened from now on.
    pub new_ones_delay_ms: u64,
    /// Connections of an earlier generation are reset.
    pub generation: u64,
}

/// Which way.
#[derive(Debug, Clone, Copy)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

impl LinkConditions {
    /// The lane of a direction.
    pub const fn lane(&self, direction: Direction) -> OneWayConditions {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    /// Takes over all of `other` but its generation.
    pub fn set_to(&mut self, other: Self) {
        *self = Self { generation: self.generation, ..other };
    }

    /// Everything passes; what was reset stays reset.
    pub fn clear(&mut self) {
        *self = Self { generation: self.generation, ..Self::default() };
    }
}
