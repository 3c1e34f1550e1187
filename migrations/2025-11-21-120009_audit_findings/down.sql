-- Takes audit_findings away with everything in it; for development databases only.
DROP TABLE audit_findings;
