#!/bin/sh
# Makes the database and the account of MARIADB_DATABASE, MARIADB_USER and MARIADB_PASSWORD in an empty volume, then serves on all
# addresses. A crash in the first part leaves no file `made`, and the next start begins anew.
set -eu
data=/var/lib/mysql
mkdir -p /run/mysqld
chown mysql:mysql /run/mysqld "$data"
if [ ! -e "$data/made" ]; then
    rm -rf "${data:?}"/*
    mariadb-install-db --user=mysql --datadir="$data" --auth-root-authentication-method=socket --skip-test-db >/dev/null
    {
        echo "CREATE DATABASE \`$MARIADB_DATABASE\`;"
        echo "CREATE USER '$MARIADB_USER'@'%' IDENTIFIED BY '$MARIADB_PASSWORD';"
        echo "GRANT ALL ON \`$MARIADB_DATABASE\`.* TO '$MARIADB_USER'@'%';"
    } >/run/mysqld/first.sql
    chown mysql:mysql /run/mysqld/first.sql
    # Serves nobody: the account is there when the port is.
    mariadbd --user=mysql --datadir="$data" --skip-networking --init-file=/run/mysqld/first.sql &
    first=$!
    until mariadb-admin --socket=/run/mysqld/mysqld.sock ping >/dev/null 2>&1; do sleep 0.2; done
    mariadb-admin --socket=/run/mysqld/mysqld.sock shutdown
    wait "$first"
    rm /run/mysqld/first.sql
    touch "$data/made"
fi
exec mariadbd --user=mysql --datadir="$data" --bind-address=0.0.0.0 "$@"
