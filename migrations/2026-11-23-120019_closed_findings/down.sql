-- What persons closed is forgotten, and found again.
DROP TABLE closed_findings;
