# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What is needed to record programs with perf and to replay their stacks (replay/unwind_replay.c); to be sourced by
# unwind_replay.sh and by tests/bench/unwind.bash.
replay_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# replay_possible: whether there is what it takes; else says what is missing.
replay_possible() {
    command -v perf >/dev/null || { echo "no perf in PATH" && return 1; }
    # Debian's is a script that looks for the kernel's own version.
    perf record -q -B -N -e cpu-clock:u --call-graph dwarf -o probe.data -- true >probe.log 2>&1 || {
        echo "perf record does not work here: $(head -n 1 probe.log)"
        return 1
    }
    rm -f probe.data probe.log
    echo '#include <elfutils/libdw.h>' | "${CC:-cc}" -E - >/dev/null 2>&1 || { echo "no elfutils/libdw.h" && return 1; }
}

# replay_build LIBRECORD OUTPUT [FLAG]...: compiles unwind_replay.
replay_build() {
    local library=$1 output=$2 wrap
    shift 2
    wrap=$(printf ' -Wl,--wrap=%s' malloc calloc realloc aligned_alloc)
    # shellcheck disable=SC2086 # a list of options
    "${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O2 -g "$@" -iquote "$replay_here/../../librecord" \
        "$replay_here"/replay/*.c "$library" -ldw -lelf -lz $wrap -o "$output"
}

# replay_record FILE EVENT SECONDS COMMAND...: what the command does in its first seconds (whole ones) of processor time
replay_record() {
    local file=$1 event=$2 seconds=$3
    shift 3
    perf record -q -B -N -e "$event" -F 999 --call-graph dwarf,32768 -o "$file" -- \
        sh -c 'ulimit -c 0; ulimit -S -t "$0"; "$@"; exit 0' "$seconds" "$@" \
        >"$file.log" 2>&1 </dev/null
    [ -s "$file" ] || { head -n 3 "$file.log" && return 1; }
}

# What is compiled: templates. The compiler proper is recorded, which a signal ends without leftovers.
replay_make_cpp() {
    command -v g++ >/dev/null || return 1
    cat >sample.cc <<'END'
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int N> struct nested {
    std::map<std::string, std::vector<std::pair<int, std::string>>> map;
    int count(const std::string &text) {
        std::regex pattern("([a-z]+)=(\\d{1,3}|\"[^\"]*\")");
        std::smatch match;
        for (auto at = text.cbegin(); std::regex_search(at, text.cend(), match, pattern); at = match[0].second)
            map[match[1]].emplace_back(N, match[2]);
        return int(map.size()) + nested<N - 1>().count(text);
    }
};
template <> struct nested<0> {
    int count(const std::string &) { return 0; }
};
int main() {
    std::string line;
    while (std::getline(std::cin, line))
        std::cout << nested<60>().count(line) << "\n";
}
END
    g++ -E -o sample.ii sample.cc
}
replay_cpp() { # FILE EVENT SECONDS
    replay_record "$@" "$(g++ -print-prog-name=cc1plus)" -quiet -fpreprocessed -O2 sample.ii -o sample.s
}

replay_make_rust() {
    command -v rustc >/dev/null && rustc --version >/dev/null 2>&1 || return 1
    cat >sample.rs <<'END'
use std::collections::{BTreeMap, HashMap};
macro_rules! group { ($($name:ident $kind:ident $n:literal),*) => { $(
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum $kind { Number(u64), Text(String), List(Vec<$kind>), Pair(Box<($kind, $kind)>) }
pub fn $name(items: &[$kind]) -> Result<BTreeMap<usize, Vec<$kind>>, String> {
    let mut seen: HashMap<$kind, usize> = HashMap::new();
    for item in items.iter().filter(|k| !matches!(k, $kind::Number(n) if *n == $n)) {
        *seen.entry(item.clone()).or_default() += 1;
    }
    let mut out: BTreeMap<usize, Vec<$kind>> = BTreeMap::new();
    for (kind, count) in seen.into_iter() {
        out.entry(count).or_insert_with(Vec::new).push(kind);
    }
    for list in out.values_mut() {
        list.sort_by(|a, b| b.cmp(a));
        list.dedup();
    }
    if out.is_empty() { Err(format!("{:?} {}", items, $n)) } else { Ok(out) }
}
)* } }
END
    awk 'BEGIN {
        for (i = 0; i < 200; i++)
            list = list (i ? ", " : "") "group" i " Kind" i " " i
        print "group!(" list ");"
    }' >>sample.rs
}
replay_rust() { # FILE EVENT SECONDS
    replay_record "$@" rustc --crate-type=rlib --crate-name=sample -O -C codegen-units=1 -o sample.rlib sample.rs
}

replay_make_python() {
    cat >sample.py <<'END'
import json, re, sys, time
class Item:
    def __init__(self, n): self.n = n
    def __lt__(self, other): return key(self.n) < key(other.n)
def key(n): return (n * 7919) % 101 if n < 3 else key(n // 2) + n % 5
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def deep(n): return sorted([Item(i) for i in range(40)])[0].n if n == 0 else max([n], key=lambda _: deep(n - 1))
def encode(o): return {"n": o.n, "more": [key(o.n)] * 3}
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end:
    fib(12)
    deep(5)
    json.loads(json.dumps([Item(i) for i in range(20)], default=encode))
    re.sub(r"[a-z]+(\d+)", lambda m: str(fib(int(m.group(1)) % 7)), "ab12 cd34 ef56 " * 4)
END
}
replay_python() { # FILE EVENT SECONDS PYTHON
    replay_record "$1" "$2" 60 "$4" sample.py "$3"
}

# A debugger that reads all symbols and types of a C library (and of its debug file, if there is one).
replay_make_gdb() {
    command -v gdb >/dev/null && replay_libc=$(ldd "$(command -v gdb)" | awk '$1 == "libc.so.6" { print $3 }') &&
        [ -n "$replay_libc" ]
}
replay_gdb() { # FILE EVENT SECONDS
    local i commands=()
    for i in 1 2 3 4 5 6; do # it reads anew each time
        commands+=(-ex "file $replay_libc" -ex 'maint expand-symtabs' -ex "info types nothing_has_this_name_$i" -ex file)
    done
    replay_record "$@" gdb -batch -nx -ex 'set pagination off' -ex 'set confirm off' "${commands[@]}"
}

# pythons: those whose stacks are worth a look, each once: the system's, and the two newest of pyenv
replay_pythons() {
    local p
    {
        PATH=/usr/bin:/bin command -v python3
        for p in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python3; do
            [ ! -x "$p" ] || echo "$p"
        done | sort -V | tail -n 2
    } 2>/dev/null
}
