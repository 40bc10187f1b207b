# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the shell tests of spoolpack share; to be sourced.
. "$(dirname "${BASH_SOURCE[0]}")/../_common.sh"
spoolpack=$BIN/spoolpack
spool2folded=$BIN/spool2folded
# Nothing of this machine.
nowhere=(--sysroot "$PWD/nowhere" --debug-dir "$PWD/nowhere" --perf-map-dir "$PWD/nowhere")
mkdir nowhere

# clean STORE: no temporary file is left in it, and all that manifests say is so.
clean() {
    [ -z "$(find "$1" -name '.tmp-*' -o -name '.spooltools-*')" ] || die "temporary files: $(find "$1")"
    run 0 "$spoolpack" --check --quiet "$1"
}

# manifest STORE FILTER: what jq makes of its only manifest.
manifest() {
    cat "$1"/captures/*/manifest-*.json >manifest.json
    jq -r "$2" manifest.json
}
