-- Old runs are then found by reading all of them; for development databases only.
ALTER TABLE audit_runs DROP KEY ix_runs_ended;
