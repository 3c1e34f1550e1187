-- Takes request_outcome away with everything in it; for development databases only.
DROP TABLE request_outcome;
