-- Takes operator_acts away with everything in it; for development databases only.
DROP TABLE operator_acts;
