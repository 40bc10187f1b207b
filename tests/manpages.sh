#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every library and tool has its manual page, and mandoc finds nothing to complain about in any.
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

if ! command -v mandoc >/dev/null; then
    [ $bad = 0 ] || exit 1
    echo "no mandoc in PATH"
    exit 77
fi
mandoc -T lint -W warning lib*/*.[35] tools/*/*.1 || bad=1
exit $bad
