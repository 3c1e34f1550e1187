-- Old runs are found by their age.
ALTER TABLE audit_runs ADD KEY ix_runs_ended (ended_at);
