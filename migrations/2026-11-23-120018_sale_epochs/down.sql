-- The last numbers of ended epochs are forgotten.
DROP TABLE sale_epochs;
