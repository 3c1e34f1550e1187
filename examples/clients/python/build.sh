#!/bin/sh
# Installs the generator into .venv, generates, and checks the types. Before it: ../documents.sh.
set -eu
cd "$(dirname "$0")"
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
PATH="$PWD/.venv/bin:$PATH"
for name in public admin; do
    openapi-python-client generate --path "../documents/$name.json" --config generator.yaml \
        --output-path "generated/$name" --meta none --overwrite
done
mypy shop.py webhooks.py generated
