-- Units go to the entries of a line by rank, and a line may be a waiting list: by arrival, opened when the sale is sold out.
ALTER TABLE sales
  ADD COLUMN line_kind VARCHAR(16) NULL COMMENT 'The kind of its line; never changes; NULL: it has none',
  ADD COLUMN by_line TINYINT(1) NOT NULL DEFAULT 0 COMMENT '1: its units go to its line, and to no click';
UPDATE sales s JOIN sale_lines l ON l.sale_id = s.sale_id SET s.line_kind = l.kind, s.by_line = 1;
ALTER TABLE sale_lines
  MODIFY COLUMN kind  VARCHAR(16) NOT NULL COMMENT 'How ranks come about: raffle (drawn), waitlist (by arrival)',
  MODIFY COLUMN state VARCHAR(16) NOT NULL COMMENT 'AWAITED (a waiting list while units are sold by click), OPEN, CLOSED (no entry is added), SEALED (count and digest are public), DRAWN, DONE (no offer is made any more)',
  ADD COLUMN last_rank INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'The last rank that a waiting list gave',
  ADD COLUMN reached_rank INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'The highest rank that was given units';
ALTER TABLE line_entries
  MODIFY COLUMN entry_rank INT UNSIGNED NULL COMMENT 'Its rank, from 1; of a raffle written with the offer',
  MODIFY COLUMN request_id BIGINT UNSIGNED NULL COMMENT 'The request of its offer, chosen once, before the purchase',
  ADD COLUMN lapse_reason VARCHAR(32) NULL COMMENT 'Why its offer lapsed',
  ADD KEY ix_line_next (sale_id, state, request_id, entry_rank);
