-- Whether buyers of a sale pass its waiting room; sales from before have none.
ALTER TABLE sales
  ADD COLUMN waiting_room TINYINT(1) NOT NULL DEFAULT 0 COMMENT 'Whether buyers pass a waiting room before they get a purchase token';
