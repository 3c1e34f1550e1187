#!/bin/sh
# Installs the generator into .venv, generates, and checks. Before it: ../documents.sh. Needs Java and Go 1.19 or newer; what is generated
# imports Go's own library only.
set -eu
cd "$(dirname "$0")"
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
# Without the first one a client refuses an answer that has a field of a later version.
options=disallowAdditionalPropertiesIfNotPresent=false,withGoMod=false,isGoSubmodule=true
rm -rf generated
for name in public admin; do
    .venv/bin/openapi-generator-cli generate --generator-name go --input-spec "../documents/$name.json" \
        --output "generated/$name" --package-name "$name" --additional-properties "$options" \
        --global-property models,apis,supportingFiles,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false
done
go vet ./...
go build -o shop .
