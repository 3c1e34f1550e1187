-- What a sale needs of its buyers. It never changes, so a copy of the row is right about it for ever.
ALTER TABLE sales
  ADD COLUMN needs VARCHAR(2000) NULL COMMENT 'Facts and pass that a buyer needs, JSON; never changes. NULL: nothing';
