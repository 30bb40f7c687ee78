#!/bin/sh
# Makes the role and the database of Clew when the volume is new. Row-level security applies to it: it is no superuser.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$POSTGRES_PASSWORD" --username postgres <<'SQL'
CREATE ROLE clew LOGIN PASSWORD :'password';
CREATE DATABASE clew OWNER clew ENCODING 'UTF8' TEMPLATE template0;
\c clew
CREATE EXTENSION vector;
SQL
