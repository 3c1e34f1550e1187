#!/bin/sh
# healthcheck.sh --connect --innodb_initialized: the server takes connections over TCP, which it does only when InnoDB is there.
exec mariadb-admin --protocol=tcp --host=127.0.0.1 --user=nobody --connect-timeout=3 ping
