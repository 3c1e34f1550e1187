-- What a buyer passes before a purchase token is issued. Read where tokens are issued only: the scripts and P2 know nothing of it.
ALTER TABLE sales
  ADD COLUMN challenge VARCHAR(32) NULL COMMENT 'pow:N or hook, before a purchase token is issued. NULL: none';
