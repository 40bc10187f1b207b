#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The commands of the README that begin with `$ ` print what it shows: they are run one after the other in a folder with
# the tests, from which they take their captures. In the README, a line `...` stands for any lines.
set -u
. "$(dirname "$0")/_examples.sh"
bad=0 commands=0
ln -s "$SRC/tests" tests

# try COMMAND SHOWN
try() {
    local status=0
    case $1 in
    *' -http '*) return ;; # a browser
    'go '*)
        if ! command -v go >/dev/null; then
            echo "left out, no go in PATH: $1"
            return
        fi
        ;;
    esac
    commands=$((commands + 1))
    timeout 60 bash -o pipefail -c "$1" >printed 2>&1 </dev/null || status=$?
    # An empty line at the end is not to be seen in the README.
    { [ ! -s printed ] || printf '%s\n' "$(<printed)"; } >out
    [ $status = 0 ] || { echo "FAILED: exit status $status: $1" && bad=1; }
    if ! same_lines out "$2"; then
        echo "FAILED: $1"
        diff <(printf '%s' "${2:+$2$'\n'}") out
        bad=1
    fi
}

command='' shown='' open=0
finish() {
    [ -z "$command" ] || try "$command" "$shown"
    command='' shown='' open=0
}
while IFS= read -r line; do
    if [[ $line != '    '* ]]; then
        finish
    elif [ $open = 1 ]; then
        command+=$'\n'${line#    }
        incomplete "$command" || open=0
    elif [[ $line == '    $ '* ]]; then
        finish
        command=${line#'    $ '}
        ! incomplete "$command" || open=1
    elif [ -n "$command" ]; then
        shown+=${shown:+$'\n'}${line#    }
    fi
done <"$SRC/README.md"
finish
[ $commands -ge 8 ] || { echo "FAILED: only $commands commands found" && bad=1; }
exit $bad
