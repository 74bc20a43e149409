#!/usr/bin/env bash
# The documentation as a site, with warnings as errors: tools/site/build.sh [FOLDER]
# FOLDER (docs/_build/html) then holds it. Needs the package and its extra [docs]; takes
# about a minute, the half of it for the gallery, whose examples run again if they change.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-docs/_build/html}
rm -rf docs/api/generated # pages of names that are gone would stay
sphinx-build --fail-on-warning --keep-going --nitpicky --quiet --jobs 2 \
  --fresh-env --write-all -b html -d docs/_build/doctrees docs "$out"
touch "$out/.nojekyll" # so that GitHub serves folders that begin with _
echo "python -m http.server --directory $out   # and open http://localhost:8000"
