#!/bin/sh
# Whether a Galera node takes statements. haproxy calls it with ADDRESS PORT of its own, then ADDRESS PORT of the node; it hands on no
# environment, so user and password are in galera-check.cnf beside this file ([client] of MariaDB's own programs).
state=$(timeout 1 mariadb --defaults-file="$(dirname "$0")/galera-check.cnf" -h "$3" -P "$4" --connect-timeout=1 -N -e \
  "SHOW STATUS LIKE 'wsrep_local_state_comment'; SHOW STATUS LIKE 'wsrep_ready'") || exit 1
case $state in *Synced*ON*) exit 0 ;; *) exit 1 ;; esac
