-- Events that were not delivered are lost with it.
DROP TABLE webhook_deliveries;
