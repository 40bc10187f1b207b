#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each claim of SECURITY.md has a test that exists, and each test of this folder a claim.
set -u
work=$PWD
cd "$SRC" || exit 1

# check FILE...: tells what is wrong in each. A claim may go on in lines that are indented.
# Behind the colon that a file follows are `FILE` NAME, NAME, `FILE` ...
check() {
    ours=$(printf '%s\n' tests/security/[!_]*.sh | grep -v claims.sh) awk '
        function wrong(what) { print text ": " what }
        function load(file,   line, rest) {
            known[file] = 0
            while ((getline line <file) > 0) {
                known[file] = 1
                if (sub(/^static void /, "", line) && (rest = index(line, "(")) > 0)
                    defined[file, substr(line, 1, rest - 1)] = 1
            }
            close(file)
        }
        function judge(   name, at, count, word, i, file, names) {
            if (claim == "")
                return
            name = claim
            sub(/ .*/, "", name)
            if (name != "C" ++number)
                wrong(name " stands where C" number " should")
            at = index(claim, ": `tests/")
            if (at == 0)
                wrong(name " has no test")
            else {
                count = split(substr(claim, at + 2), word, " ")
                for (i = 1; i <= count; i++) {
                    sub(/,$/, "", word[i])
                    if (word[i] ~ /^`/) {
                        if (file ~ /\.c$/ && names == 0)
                            wrong(name ": " file " without the name of a test")
                        file = word[i]
                        gsub(/`/, "", file)
                        names = 0
                        if (!(file in known))
                            load(file)
                        if (!known[file])
                            wrong(name ": no file " file)
                        named[text, file] = 1
                    } else {
                        names++
                        if (!((file, word[i]) in defined))
                            wrong(name ": no test " word[i] " in " file)
                    }
                }
                if (file ~ /\.c$/ && names == 0)
                    wrong(name ": " file " without the name of a test")
            }
            claim = ""
        }
        function finish(   i, count, file) {
            judge()
            if (number == 0)
                wrong("no claims")
            count = split(ENVIRON["ours"], file, "\n")
            for (i = 1; i <= count; i++)
                if (!((text, file[i]) in named))
                    wrong("no claim names " file[i])
            number = 0
        }
        FNR == 1 && NR > 1 { finish() }
        { text = FILENAME }
        /^\* C[0-9]+ / { judge(); claim = substr($0, 3); next }
        /^  / && claim != "" { claim = claim $0; next }
        { judge() }
        END { finish() }' "$@"
}

# It must be able to fail.
sed '0,/every_changed_byte/s//every_absent_byte/' SECURITY.md >"$work/name"
sed 's/^\(\* C9 .*\): `.*/\1/' SECURITY.md >"$work/none"
sed 's/^\(\* C1 .*\) .*/\1/' SECURITY.md >"$work/nameless"
sed 's#tests/security/escapes.sh#tests/security/files.sh#' SECURITY.md >"$work/unclaimed"
sed 's#tests/security/escapes.sh#tests/security/none.sh#' SECURITY.md >"$work/file"
sed '/^\* C12 /d' SECURITY.md >"$work/gap"
faulty=(name none nameless unclaimed file gap)

check SECURITY.md "${faulty[@]/#/$work/}" >"$work/told"
bad=0
if grep '^SECURITY.md: ' "$work/told"; then bad=1; fi
for file in "${faulty[@]}"; do
    grep -q "^$work/$file: " "$work/told" || {
        echo "a faulty copy is not noticed: $file"
        bad=1
    }
done
exit $bad
