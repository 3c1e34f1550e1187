-- Lines without offers, and raffles only. A sale whose units go to its line sells by click again.
ALTER TABLE line_entries DROP KEY ix_line_next, DROP COLUMN lapse_reason;
ALTER TABLE sale_lines DROP COLUMN reached_rank, DROP COLUMN last_rank;
ALTER TABLE sales DROP COLUMN by_line, DROP COLUMN line_kind;
