#!/bin/sh
# The documents that clients are generated of, taken from a running stack: documents.sh [DEV_JSON] writes them to documents/.
#
# DEV_JSON is the file of `seckill dev` or `make run`, .seckill/dev.json. Of a system in production the addresses and a token of
# the role view do: /openapi.json of an api process, /admin/v1/openapi.json of any.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dev=${1:-.seckill/dev.json}
field() { sed -n "s/^  \"$1\": *\"\([^\"]*\)\".*/\1/p" "$dev"; }
mkdir -p "$here/documents"
curl -fsS -m 15 "$(field api)/openapi.json" -o "$here/documents/public.json"
curl -fsS -m 15 "$(field admin)/admin/v1/openapi.json" -H "Authorization: Bearer $(field admin_token)" \
    -o "$here/documents/admin.json"
cp "${ASYNCAPI:-$here/../../docs/asyncapi.yaml}" "$here/documents/asyncapi.yaml"
