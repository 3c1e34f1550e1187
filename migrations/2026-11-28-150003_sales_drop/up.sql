-- Which drop a sale belongs to. No index: the row of the drop lists its sales.
ALTER TABLE sales
  ADD COLUMN drop_id VARBINARY(64) NULL COMMENT 'The drop that it belongs to, for good; NULL: none';
