-- Forgets which pseudonyms were given; for development databases only.
DROP TABLE forgotten_buyers;
