-- Forgets what was announced; for development databases only. Events that wait for the broker stay in order_events.
DROP TABLE sale_announcements;
