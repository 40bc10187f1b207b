# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What tests of speedscope documents share; to be sourced by a shell test, in its folder. Whatever fails ends the test, or
# the $(...) it stands in (set -e). ctest runs tests that use speedscope_app one at a time.
#
#   speedscope_need                    skips the test where node or the npm packages are not there
#   speedscope_need_app                and where Chromium is not
#   speedscope_check FILE              our validator; its summary goes to FILE.check
#   speedscope_refused FILE TEXT       the validator refuses it, with TEXT in what it says
#   speedscope_folded FILE INDEX [--microseconds]   stacks of a profile as spool2folded --root=none writes them
#   speedscope_app FILE [OPTION]...    opens it in the app (options: speedscope_app.mjs); what it has goes to FILE.app
#   speedscope_apps [OPTION]... FILE...   several in one browser; what it says goes to apps.err, pictures to FILE.png. Files that
#                                      are refused have errors in FILE.app, and end nothing
#   json FILE EXPRESSION               a value of a JSON file: json x.app 'd.profiles[0].busyWeight'
_speedscope_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${CONSUMERS:=$_speedscope_folder/../../build/consumers}"
export CONSUMERS

die() {
    echo "FAILED: $*" >&2
    exit 1
}

speedscope_need() {
    command -v node >/dev/null && [ -e "$CONSUMERS/node_modules/speedscope/dist/release/index.html" ] && return
    echo "no node, or no speedscope in $CONSUMERS (scripts/deps consumers)"
    exit 77
}
speedscope_need_app() {
    speedscope_need
    local program
    for program in "${CHROMIUM:-chromium}" chromium-browser google-chrome; do
        command -v "$program" >/dev/null && return
    done
    echo "no Chromium (scripts/deps consumers)"
    exit 77
}

speedscope_check() {
    node "$_speedscope_folder/speedscope_check.mjs" "$1" >"$1.check" || die "$1 is no document of ours"
}
speedscope_refused() {
    ! node "$_speedscope_folder/speedscope_check.mjs" "$1" >"$1.check" 2>"$1.faults" || die "$1 is accepted"
    grep -qF -e "$2" "$1.faults" || die "$1 is refused, but not for: $2: $(head -3 "$1.faults")"
}
speedscope_folded() {
    local file=$1 index=$2
    shift 2
    node "$_speedscope_folder/speedscope_check.mjs" --folded "$index" "$@" "$file" || die "$file is no document of ours"
}
speedscope_app() {
    local file=$1
    shift
    node "$_speedscope_folder/speedscope_app.mjs" "$@" "$file" >"$file.app" || die "the app does not open $file"
}
speedscope_apps() {
    local status=0
    node "$_speedscope_folder/speedscope_app.mjs" --beside "$@" 2>apps.err || status=$?
    [ $status -le 1 ] || die "speedscope_app.mjs: exit $status: $(head -3 apps.err)"
}

json() {
    node -e 'const d = JSON.parse(require("fs").readFileSync(process.argv[1]));
        const value = new Function("d", "return " + process.argv[2])(d);
        console.log(typeof value === "string" ? value : JSON.stringify(value));' "$1" "$2"
}
