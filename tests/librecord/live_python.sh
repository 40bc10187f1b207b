#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Python 3.12 and newer names its functions with -X perf: the spool marks the process, and converters show these names.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"

python=
for candidate in python3 python3.12 python3.13 python3.14 ~/.pyenv/versions/3.1[2-9]*/bin/python3; do
    if "$candidate" -X perf -c 'import sys; sys.exit(not sys.is_stack_trampoline_active())' 2>/dev/null; then
        python=$("$candidate" -c 'import sys; print(sys.executable)')
        break
    fi
done
if [ -z "$python" ]; then
    left_out "Python with perf support: there is none here"
    exit 0
fi

cat >work.py <<'END'
import time

def leaf_function(end):
    n = 0
    while time.process_time() < end:
        for i in range(10000):
            n += i
    return n

def middle_function(end):
    return leaf_function(end)

middle_function(time.process_time() + 0.8)
END
record python -- "$python" -X perf work.py
fold python
# Its trampolines have no unwind information; where the interpreter has no frame pointers, the stack ends at the first.
awk '{ n += $NF } /leaf_function/ { named += $NF } /middle_function.*leaf_function/ { whole += $NF }
     END { printf "%d of %d samples named, %d with the caller\n", named, n, whole; exit !(n > 600 && named > 0.8 * n) }' \
    python.folded >python.named || failed "python: $(cat python.named)"
cat python.named
[ "$("$BIN/spoolcat" --records --json python.spool | jq -r 'select(.rec == "python" and .on) | .pid' | head -n 1 | wc -l)" = 1 ] ||
    failed "python: the process is not marked"

record plain -- "$python" -c 'sum(i * i for i in range(8000000))'
fold plain
awk '{ n += $NF } /truncated/ { cut += $NF } END { exit !(n > 0 && cut < 0.005 * n) }' plain.folded ||
    failed "plain: truncated stacks: $(grep truncated plain.folded | head -n 3)"

exit $bad
