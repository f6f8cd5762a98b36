#!/usr/bin/env bash
# highspy 1.16.0, output.
# Belief: a HiGHS object prints nothing if its output is switched off before it reads or solves a model.
# Behaviour: two lines about version and licence go to the standard output when the first object of a process is made,
#   before any option can be set. With 1.15.1 nothing is printed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > solve.py <<'PYTHON'
import highspy

for number in (1, 2):
    highs = highspy.Highs()
    print(f"object {number} made", flush=True)
    highs.setOptionValue("output_flag", False)
    highs.addVar(0.0, 1.0)
    highs.changeColCost(0, -1.0)
    highs.run()
    print(f"object {number} has solved", flush=True)
PYTHON
for version in 1.15.1 1.16.0; do
  python3 -m venv "$version"
  "$version/bin/pip" install --quiet --disable-pip-version-check "highspy==$version"
  echo "== $version"
  "$version/bin/python" solve.py | tee "$version.txt"
done
grep -c "Running HiGHS" 1.16.0.txt | grep -qx 1
head -n 1 1.16.0.txt | grep -q "^Running HiGHS"
! grep -q "Running HiGHS" 1.15.1.txt
