-- Takes audit_runs away with everything in it; for development databases only.
DROP TABLE audit_runs;
