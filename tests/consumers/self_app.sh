#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The speedscope app shows the worked example with its numbers, in both forms, and what it cannot show is an error.
set -eu
. "$(dirname "$0")/_speedscope.sh"
documents=$(dirname "$0")/documents
speedscope_need_app

equal() { # WHAT GOT EXPECTED
    [ "$2" = "$3" ] || _speedscope_die "$1: $2 instead of $3"
}

for form in sampled evented; do
    cp "$documents/worked-$form.speedscope.json" $form.json
done
sed 's/"profiles":.*,"shared"/"profiles":[],"shared"/' sampled.json >empty.json
sed 's/\[0,1,2,3\]/[0,1,2,9]/' sampled.json >range.json
# Those that are refused are no trouble for those behind them.
speedscope_apps --screenshot beside --view left-heavy --size 900x300 empty.json sampled.json range.json evented.json

for form in sampled evented; do
    file=$form.json
    equal "$form: errors" "$(json "$file.app" 'd.errors')" '[]'
    equal "$form: names" "$(json "$file.app" '[d.name, ...d.profiles.map((p) => p.name)]')" '["app.spool","app 40 / worker 1 41"]'
    equal "$form: weights" "$(json "$file.app" '[d.profiles[0].totalWeight, d.profiles[0].busyWeight]')" '[60000000,30000000]'
    equal "$form: roots" "$(json "$file.app" 'd.profiles[0].roots')" '[{"name":"main","weight":30000000}]'
    equal "$form: list" "$(json "$file.app" 'd.profiles[0].table.map((r) => `${r.name} ${r.total} ${r.self}`).sort().join(", ")')" \
        'f 20.00ms (67%) 10.00ms (33%), g 10.00ms (33%) 10.00ms (33%), main 30.00ms (100%) 0.00ns (<0.01%), run 30.00ms (100%) 10.00ms (33%)'
    equal "$form: frames" "$(json "$file.app" 'd.profiles[0].byTotal.map((f) => [f.name, f.self, f.total].join())')" \
        '["main,0,30000000","run,10000000,30000000","f,10000000,20000000","g,10000000,10000000"]'
    equal "$form: picture" "$(head -c 8 "$file.png" | od -An -tx1)" ' 89 50 4e 47 0d 0a 1a 0a'
done

refused() { # FILE TEXT
    equal "$1: errors" "$(json "$1.app" 'd.errors.length > 0')" true
    grep -F "speedscope_app: $1: " apps.err | grep -qF -e "$2" || _speedscope_die "$1: no $2: $(<apps.err)"
}
refused empty.json "dialog: Successfully imported profile, but it's empty!"
refused range.json 'Failed to load'
# One file by itself, as in demos: what is refused fails.
! (speedscope_app range.json) 2>err || _speedscope_die "the app opens range.json"
grep -qF 'Failed to load' err || _speedscope_die "range.json: $(<err)"
