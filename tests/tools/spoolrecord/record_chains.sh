#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A C++ program with much inlining is recorded, and every address that was sampled in it has the chain that llvm-symbolizer
# gives, in spoolcat's samples and in what the converters write.
. "$(dirname "$0")/_common.sh"
for tool in g++ llvm-symbolizer jq nm readelf; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
compare=$SRC/tests/libsym/compare_chains.c

cat >prog.cc <<'END'
#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

namespace {
struct Item {
    std::string key;
    double weight;
    bool operator<(const Item &o) const { return weight < o.weight || (weight == o.weight && key < o.key); }
};

template <class T> struct Stats {
    T sum{}, square{};
    void add(T x) { sum += x; square += x * x; }
    T variance(std::size_t n) const { return square / n - sum / n * (sum / n); }
};

double round_of(unsigned seed)
{
    std::vector<Item> items;
    std::unordered_map<std::string, std::vector<int>> index;
    std::map<std::string, Stats<double>> stats;
    for (unsigned i = 0; i < 3000; i++) {
        seed = seed * 1103515245u + 12345u;
        items.push_back({"key" + std::to_string(seed >> 20), double(seed % 1000)});
        index[items.back().key].push_back(int(i));
        stats[items.back().key.substr(0, 5)].add(items.back().weight);
    }
    std::sort(items.begin(), items.end());
    std::stable_sort(items.begin(), items.end(), [](const Item &a, const Item &b) { return a.key < b.key; });
    double total = std::accumulate(items.begin(), items.end(), 0.0, [](double s, const Item &i) { return s + i.weight; });
    for (const auto &s : stats)
        total += s.second.variance(items.size());
    for (const auto &i : index)
        total += double(std::count_if(i.second.begin(), i.second.end(), [](int n) { return n % 3 == 0; }));
    return total;
}
} // namespace

int main()
{
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    double total = 0;
    for (unsigned n = 1; std::chrono::steady_clock::now() < end; n++)
        total += round_of(n);
    return total < 0;
}
END
g++ -O2 -g -o prog prog.cc || die "g++"
gcc -O1 -std=gnu11 -o compare_chains "$compare" || die "compare_chains"
"$spoolrecord" -q -F 1999 -o cap.spool -- ./prog 2>err || {
    # the text of a refusal names the setting
    ! grep -qiE 'permission|paranoid|not permitted' err || { echo "skipped: $(<err)"; exit 77; }
    die "spoolrecord: $(<err)"
}

# Chains by file offset: frames of prog, up to the physical one that ends each. Stubs have names of ours alone.
spoolcat --samples --json --demangle=none --perf-maps=none cap.spool >samples || die "spoolcat"
jq -c --arg prog "$PWD/prog" '.frames | [foreach .[] as $f ([]; (if length > 0 and (.[-1].inlined | not) then [] else . end) + [$f];
    if $f.inlined then empty else . end)] | .[] | select(.[0].module.path == $prog and (.[0].name // "" | endswith("@plt") | not))' samples | sort -u >chains
[ "$(wc -l <chains)" -ge 100 ] || die "only $(wc -l <chains) addresses were sampled"
read -r file_offset vaddr < <(readelf -lW prog | awk '$1 == "LOAD" && / R E / { print $2, $3 }')
jq -r '.[0].module.rel' chains | while read -r rel; do printf '0x%x\n' $((rel - file_offset + vaddr)); done >addresses
jq -r '(.[] | "\(.name // "??")\n  Filename: \(.file // "??")\n  Line: \(.line // 0)\n  Column: \(.column // 0)"), ""' chains >ours
llvm-symbolizer --obj=prog --output-style=LLVM --inlines --functions=linkage --no-demangle --verbose <addresses |
    sed '/^  Function start/d' >theirs
nm -aS prog >symbols
./compare_chains recorded symbols addresses theirs ours || die "other chains"
inlined=$(jq -s 'map(length - 1) | add' chains)
[ "$inlined" -ge 100 ] || die "only $inlined inlined frames"

# The folded stacks are those chains, root first. Stacks that are cut, of which there may be a few where the kernel could not
# copy a page that was not there yet, have a marker that samples show otherwise.
cut=$(jq -c 'select(any(.frames[]; .kind == "truncated"))' samples | wc -l)
[ "$cut" -le $(($(wc -l <samples) / 100)) ] || die "$cut of $(wc -l <samples) stacks are cut"
jq -r 'select(all(.frames[]; .kind != "truncated")) | .frames | reverse | map(.name // "?") | join(";")' samples | sort | uniq -c |
    awk '{ n = $1; sub(/^ *[0-9]+ /, ""); print $0 " " n }' | LC_ALL=C sort >expected
spool2folded --root=none --demangle=none --perf-maps=none --runtime=show cap.spool | LC_ALL=C sort >folded
grep -v '?' expected >expected_named
grep -vE '^\[truncated\]|\+0x|(^|;)0x' folded >folded_named
diff expected_named folded_named >difference || die "folded: $(head -5 difference)"
