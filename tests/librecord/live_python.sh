#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Python 3.12 and newer names its functions with -X perf: the spool marks the process, and converters show these names.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"

pythons=()
for candidate in python3 python3.12 python3.13 python3.14 ~/.pyenv/versions/3.1[2-9]*/bin/python3; do
    "$candidate" -X perf -c 'import sys; sys.exit(not sys.is_stack_trampoline_active())' 2>/dev/null || continue
    python=$("$candidate" -c 'import os, sys; print(os.path.realpath(sys.executable))')
    [[ " ${pythons[*]} " = *" $python "* ]] || pythons+=("$python")
done
if [ ${#pythons[@]} = 0 ]; then
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

def middle_function(end, depth):
    return middle_function(end, depth - 1) if depth > 0 else leaf_function(end)

def sorts(end):
    numbers = list(range(2000))
    while time.process_time() < end:
        numbers.sort(key=lambda x: -x)

end = time.process_time()
middle_function(end + 0.35, 8)
sorts(end + 0.7)
END
# Its trampolines have no unwind data, and the interpreter may have no frame pointers: they are told by their code.
n=0
for python in "${pythons[@]}"; do
    name=python$((n++))
    record $name -- "$python" -X perf work.py
    fold $name --runtime=show
    awk '{ n += $NF } /^_start;/ { rooted += $NF } /leaf_function/ { leaf += $NF } /sorts.*<lambda>/ { sorts += $NF }
         /leaf_function/ { k = $0; if (gsub(/middle_function/, "", k) == 9) whole += $NF }
         END { printf "%d samples, %d to _start, %d in leaf_function, %d of them with all callers, %d sort\n", n, rooted, leaf,
                      whole, sorts
               exit !(n > 450 && rooted >= 0.99 * n && leaf > 0.3 * n && whole >= 0.99 * leaf && sorts > 0.1 * n) }' \
        $name.folded >$name.told || failed "$python: $(cat $name.told; grep -v ^_start $name.folded | head -n 5)"
    echo "$("$python" -V): $(cat $name.told)"
    [ "$("$BIN/spoolcat" --records --json $name.spool | jq -r 'select(.rec == "python" and .on) | .pid' | head -n 1 | wc -l)" = 1 ] ||
        failed "$python: the process is not marked"
done

record plain -- "$python" -c 'sum(i * i for i in range(4000000))'
fold plain
awk '{ n += $NF } /truncated/ { cut += $NF } END { exit !(n > 0 && cut < 0.005 * n) }' plain.folded ||
    failed "plain: truncated stacks: $(grep truncated plain.folded | head -n 3)"

exit $bad
