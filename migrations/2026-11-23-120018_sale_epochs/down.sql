DROP TABLE sale_epochs;
