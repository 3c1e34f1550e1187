-- A cancelled order keeps its row (and its buyer's quota); its units are in sales.stock again. All three are NULL together.
ALTER TABLE orders
  ADD COLUMN cancelled_at  DATETIME(3)   NULL COMMENT 'When an operator cancelled it, UTC; NULL while it stands',
  ADD COLUMN cancelled_by  VARCHAR(64)   NULL COMMENT 'Who cancelled it',
  ADD COLUMN cancel_reason VARCHAR(1000) NULL COMMENT 'Why, in words';
