# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the tests of completion share; to be sourced.
. "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
mapfile -t tools < <(cd "$SRC/tools" && ls -d */main.c | cut -d/ -f1)

# options TOOL [LONG]: the options of its --help, one a line, negated ones too; LONG: long ones alone.
options() {
    "$1" --help | sed -n 's/^  \(-.*\)/\1/p' | sed 's/   *.*//' | grep -oE -e '--\[no-\][a-z-]+|--[a-z-]+|(^|[ ,])-[a-zA-Z]\b' |
        sed 's/^[ ,]*//; s/^--\[no-\]\(.*\)/--\1\n--no-\1/' | if [ $# -gt 1 ]; then grep -e '^--'; else cat; fi | sort
}

# Files to complete. The tools never see them.
mkdir -p work/folder 'work/a folder' work/x.spool.d
touch work/{cap.spool,cap.spool.gz,text.txt,store.tar.gz,x:y,'my cap.spool'} work/folder/inner.spool
