#!/bin/sh
# Installs the generators, generates, and checks the types. Before it: ../documents.sh.
set -eu
cd "$(dirname "$0")"
npm install --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error
# Else a field with a default would have to be sent.
types="npx openapi-typescript --default-non-nullable=false"
$types ../documents/public.json -o src/generated/public.ts
$types ../documents/admin.json -o src/generated/admin.ts
node events.mjs ../documents/asyncapi.yaml src/generated/events
npx tsc
