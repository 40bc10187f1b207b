# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Runs every example of a tool's manual page; to be sourced by tools/TOOL/man_examples.sh, which calls man_examples TOOL.
#
# An example is a line of .Dl, or of a literal block, that begins with `$ `: a command, which goes on while the shell
# finds it incomplete or it ends with a backslash. In a block, lines behind it are what it prints, where `...` stands for
# any lines. Each block runs in a copy of the prepared folder (_examples_world.sh), a command after the other.
#
# A command has to end with status 0 and to leave something: on standard output or error, or in a file. It must not warn,
# unless the page shows that, or it is about damaged spools or progress, or the test says in may_warn what may come. Each
# option of --help has to be among the arguments that some command gave to the tool itself.
set -eu
. "$(dirname "${BASH_SOURCE[0]}")/_examples_world.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../_options.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../_examples.sh"
bad=0
failed() {
    printf 'FAILED: %s\n' "$@"
    bad=1
}

# ---- what stands in the page ----

# extract PAGE: lines `B` (a block begins) or `D` (one of a single line) and `L TEXT` (of it).
extract() {
    awk '
        function plain(s) {
            gsub(/\\\(aq/, "\047", s)
            gsub(/\\&/, "", s)
            gsub(/\\-/, "-", s)
            gsub(/\\e/, "\\", s)
            return s
        }
        /^\.Bd .*-literal/ { inside = 1; shown = 0; next }
        /^\.Ed/ { inside = 0; next }
        inside { if (!shown && /^\$ /) { print "B"; shown = 1 } if (shown) print "L " plain($0); next }
        /^\.Dl \$ / { print "D"; print "L " plain(substr($0, 5)) }
    ' "$1"
}

# ---- programs that the examples call ----

# What a program of the project is called with goes to $log; what looks at documents checks that they are right in form.
make_stubs() { # FOLDER
    local tool
    mkdir "$1"
    for tool in spoolrecord spoolcat spool2folded spool2pprof spool2speedscope spoolpack; do
        cat >"$1/$tool" <<END
#!/bin/sh
for word; do
    [ "\$word" = -- ] && break
    printf '%s %s\n' $tool "\$word" >>"\$log"
done
exec "$BIN/$tool" "\$@"
END
    done
    stub() { # NAME, with its text on standard input
        { echo '#!/bin/bash' && cat; } >"$stubs/$1"
    }
    stub flamegraph.pl <<'END'
awk '!/^[^;].* [0-9]+$/ { print "flamegraph.pl: not a stack: " $0 >"/dev/stderr"; bad = 1 } END { exit bad || NR == 0 }' || exit 1
echo '<svg/>'
END
    stub less <<'END'
for file; do :; done
case ${file:--} in -*) file=/dev/stdin ;; esac
grep . "$file"
END
    stub go <<'END'
# go tool pprof [OPTION]... FILE...
[ "$1 $2" = "tool pprof" ] || exit 1
for file; do
    case $file in
    *.pb.gz) gzip -dc "$file" | grep -qa 'nanoseconds' || { echo "go: no profile: $file" >&2 && exit 1; } ;;
    esac
done
[[ ${!#} == *.pb.gz ]] && echo "Type: cpu"
END
    stub speedscope <<'END'
jq -e '.["$schema"] and (.profiles | length > 0) and (.shared.frames | length > 0)' "$1"
END
    stub curl <<'END'
file=
for word; do
    case $word in *@*.pb.gz) file=${word#*@} ;; esac
done
gzip -dc "$file" | grep -c nanoseconds
END
    stub rsync <<'END'
for last; do :; done
[[ $last == elsewhere: ]] || exit 1
mkdir -p ../elsewhere && cp -r "${@:2:$#-2}" ../elsewhere && echo "${@:2:$#-2}"
END
    stub ssh <<'END'
[ "$1" != elsewhere ] || cd ../elsewhere || exit 1
exec bash -c "${*:2}"
END
    stub python3 <<'END'
exec ./app
END
    stub make <<'END'
exec ./app
END
    chmod +x "$1"/*
}

# ---- running ----

# What would change if a command wrote a file, or replaced one.
files() {
    find . -type f -size +0 -printf '%p %s %T@ %i\n' | sort
}

# try COMMAND SHOWN: in the folder of the block. SHOWN is what the page shows of its output.
try() {
    local command=$1 shown=$2 status=0
    commands=$((commands + 1))
    if declare -F substitute >/dev/null; then
        substitute
    fi
    timeout 60 bash -o pipefail -c "$command" >../out 2>../err </dev/null || status=$?
    files >../after
    # A reader that has seen enough ends the pipe.
    [[ $status == 141 && $command =~ \|\ *(head|less) ]] && status=0
    if [ "$status" != 0 ]; then
        failed "exit status $status: $command" "$(head -n 5 ../err)"
    elif [ -n "$shown" ]; then
        cat ../err >>../out
        same_lines ../out "$shown" || failed "$command" "shown:" "$shown" "printed:" "$(head -n 20 ../out)"
    elif ! [[ $command =~ (cut|broken)\.spool|--progress=always ]] && grep -E '^spool[a-z0-9]+: ' ../err |
        grep -vE -- "${may_warn:-^$}"; then
        failed "a warning: $command"
    elif [ ! -s ../out ] && [ ! -s ../err ] && cmp -s ../before ../after; then
        failed "nothing was written: $command"
    fi
    mv ../after ../before
}

# Makes the folder of the block what it was.
restore() {
    local file rest
    comm -13 ../as_made ../before | while read -r file rest; do
        rm -f "$file"
    done
    comm -23 ../as_made ../before | while read -r file rest; do
        mkdir -p "${file%/*}"
        cp -a "$top/world/$file" "$file"
    done
    files >../as_made
    cp ../as_made ../before
}

# examples: of standard input, as `extract` gives them.
examples() {
    local kind block='' rest='' command='' shown='' open=0
    finish() {
        [ -z "$command" ] || try "$command" "$shown"
        command='' shown='' open=0
    }
    mkdir run
    cp -a world run/folder
    cd run/folder
    files >../as_made
    cp ../as_made ../before
    while IFS= read -r rest; do
        kind=${rest%% *}
        rest=${rest#? }
        if [ "$kind" != L ]; then
            finish
            block=$kind
            blocks=$((blocks + 1))
            cmp -s ../before ../as_made || restore
            if declare -F before_block >/dev/null; then
                before_block
            fi
            continue
        fi
        if [ $open = 1 ]; then
            command+=$'\n'$rest
        elif [[ $rest == '$ '* ]]; then
            finish
            command=${rest#'$ '}
        else
            shown+=${shown:+$'\n'}$rest
            continue
        fi
        open=0
        [ "$block" = D ] || ! incomplete "$command" || open=1
    done
    finish
    cd "$top"
}

# man_examples TOOL: the whole test. Runs the function prepare, if there is one, in the prepared folder.
man_examples() {
    local tool=$1 page=$SRC/tools/$1/$1.1 names
    top=$PWD stubs=$PWD/stubs log=$PWD/arguments blocks=0 commands=0
    export log
    world_needs
    make_world world
    cd "$top"
    make_stubs "$stubs"
    : >"$log"
    export PATH="$stubs:$PATH"
    if declare -F prepare >/dev/null; then
        prepare
    fi

    extract "$page" >extracted
    examples <extracted

    # What a reader sees are these commands, and none is too wide for a screen.
    if command -v mandoc >/dev/null; then
        mandoc -T ascii "$page" | sed 's/.\x08//g' >rendered # without overstrikes
        awk '
            NR == FNR { lines[NR] = $0; n = NR; next }
            sub(/^L /, "") {
                for (i = 1; i <= n && !index(lines[i], $0);) i++
                if (i > n) print "not shown as it stands, or broken: " $0
                else if (length(lines[i]) > 80) print "wider than 80 columns: " $0
            }' rendered extracted >unseen
        [ ! -s unseen ] || failed "$page:" "$(<unseen)"
    fi

    help_options "$tool" >options
    [ "$(wc -l <options)" -gt 10 ] || failed "no options in --help"
    sed -n "s/^$tool \(-[^=]*\).*/\1/p" "$log" | sort -u >given
    while read -r names; do
        tr ' ' '\n' <<<"$names" | grep -qxFf - given || failed "$page: no example has $names"
    done <options
    echo "$commands commands in $blocks examples, $(wc -l <options) options"
}
