DROP TABLE closed_findings;
