-- Who counts as one buyer for the limits of a sale and of its drop. It never changes, so a copy of the row is right about it for ever.
ALTER TABLE sales
  ADD COLUMN limit_by VARCHAR(16) NOT NULL DEFAULT 'account' COMMENT 'account or person; never changes';
