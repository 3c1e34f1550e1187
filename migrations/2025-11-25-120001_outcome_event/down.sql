-- Takes outcome_event away with everything in it; for development databases only.
DROP TABLE outcome_event;
