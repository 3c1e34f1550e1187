-- Lets every blocked buyer buy again; for development databases only.
DROP TABLE blocked_buyers;
