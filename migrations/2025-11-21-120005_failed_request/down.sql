-- Takes failed_request away with everything in it; for development databases only.
DROP TABLE failed_request;
