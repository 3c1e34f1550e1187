-- Events not told yet are lost with it.
DROP TABLE order_events;
