#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every library and tool has its manual page; each fits 80 columns, refers to pages of ours that there are, and mandoc finds
# nothing to complain about in it.
set -u
cd "$SRC" || exit 1
bad=0

for page in libspool/libspool.3 libspool/spool.5 librecord/librecord.3 libsym/libsym.3; do
    [ -e $page ] || { echo "missing: $page" && bad=1; }
done
for main in tools/*/main.c; do
    tool=$(basename "$(dirname "$main")")
    [ -e "tools/$tool/$tool.1" ] || { echo "missing: tools/$tool/$tool.1" && bad=1; }
done

# Pages of ours that no page of ours is.
for reference in $(sed -nE 's/^\.Xr ((spool|lib(spool|record|sym))[a-z0-9]*) ([0-9]).*/\1.\4/p' lib*/*.[35] tools/*/*.1 | sort -u); do
    compgen -G "lib*/$reference" >/dev/null ||
        compgen -G "tools/*/$reference" >/dev/null || { echo "no such page: $reference" && bad=1; }
done

if ! command -v mandoc >/dev/null; then
    [ $bad = 0 ] || exit 1
    echo "no mandoc in PATH"
    exit 77
fi
mandoc -T lint -W warning lib*/*.[35] tools/*/*.1 || bad=1
for page in lib*/*.[35] tools/*/*.1; do
    mandoc -T ascii -O width=80 "$page" | sed 's/.\x08//g' | page=$page awk '
        length > 80 { print ENVIRON["page"] ": wider than 80 columns: " $0; bad = 1 }
        END { exit bad }' || bad=1
done
exit $bad
