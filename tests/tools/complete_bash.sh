#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What bash completes by what the tools print: options, the words of values, files, processes, commands.
. "$(dirname "$0")/_completion.sh"

for tool in "${tools[@]}"; do
    script=$BUILD/completion/bash/$tool
    "$tool" --completion=bash | cmp - "$script" || die "$script is not what $tool prints"
    bash -n "$script"
    eval "$("$tool" --completion bash)"
    complete -p "$tool" | grep -qx "complete -F _$tool $tool" || die "$(complete -p "$tool")"
done
if command -v shellcheck >/dev/null; then # of one: it takes its time
    shellcheck -s bash "$BUILD/completion/bash/spoolrecord" || die "shellcheck"
fi
compopt() { :; } # which works only while readline completes
cd work

# complete LINE: sets COMPREPLY as bash would for this line, whose words end at blanks, = and :.
ends='=:'
complete_line() {
    local word rest=$1
    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=()
    while [[ $rest =~ ^\ *(([^\ $ends\\\']|\\.)+|[$ends]+|\'[^\']*) ]]; do
        COMP_WORDS+=("${BASH_REMATCH[1]}")
        rest=${rest:${#BASH_REMATCH[0]}}
    done
    if [[ $1 == *' ' && $1 != *'\ ' && $1 != *\'* ]]; then COMP_WORDS+=(''); fi
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    word=${COMP_WORDS[COMP_CWORD]}
    if [[ $word =~ ^[=:]+$ ]]; then word=; fi
    COMPREPLY=()
    "_${1%% *}" "${1%% *}" "$word" "${COMP_WORDS[COMP_CWORD - 1]}"
}
# offers LINE ANSWER...: nothing but these, in any order.
offers() {
    complete_line "$1"
    [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort -u)" = "$(printf '%s\n' "${@:2}" | sort)" ] ||
        die "'$1' offers: ${COMPREPLY[*]-nothing}; not: ${*:2}"
}

for tool in "${tools[@]}"; do
    mapfile -t wanted < <(options "$tool")
    ((${#wanted[@]} > 20)) || die "$tool --help has ${wanted[*]}"
    offers "$tool -" "${wanted[@]}"
    mapfile -t wanted < <(options "$tool" long)
    offers "$tool --" "${wanted[@]}"
    offers "$tool --completion=" bash zsh
done
offers 'spool2folded --no-i' --no-inlines
offers 'spoolcat --quiet --qui' --quiet
offers 'spoolpack --no-s' # which it lacks

# Words of values, in both forms; some and some more.
offers 'spool2folded --root=' none process pid thread
offers 'spool2folded --root ' none process pid thread
offers 'spool2folded --root=p' process pid
offers 'spool2folded --root t' thread
offers 'spool2folded --root process --kernel=d' drop
offers 'spoolrecord --frequency=' max
offers 'spoolrecord -F m' max
offers 'spoolrecord -kF ' max
offers 'spoolrecord -kFm' # not told from a cluster
offers 'spoolrecord -Fm' -Fmax
offers 'spool2folded --perf-maps=a' auto all
offers 'spool2pprof --labels=t' tid thread
offers 'spool2pprof --labels pid,t' pid,tid pid,thread
offers 'spool2pprof --comment '
offers 'spoolcat --nothing='
ends=: # where = was taken out of COMP_WORDBREAKS
offers 'spool2folded --root=p' --root=process --root=pid
ends='=:'

# Files, with what readline and the shell make of their names.
files=(cap.spool cap.spool.gz 'my cap.spool' folder 'a folder' x.spool.d)
offers 'spoolcat ' "${files[@]}"
offers 'spoolcat --json ' "${files[@]}"
offers 'spoolcat --color=always ' "${files[@]}"
offers 'spoolcat --output= ' "${files[@]}"
offers 'spoolcat -o out -- ' "${files[@]}"
offers 'spoolcat -- --'
offers 'spoolcat c' cap.spool cap.spool.gz
offers 'spoolcat te' text.txt # nothing else begins so
mkdir lines $'lines/a\nfolder'
touch $'lines/a\nb.spool' $'lines/x.txt\ny' lines/c.spool
offers 'spoolcat lines/' lines/c.spool # a name of two lines is not offered as two names
offers 'spoolcat lines/x'
offers 'spoolcat --sysroot=lines/' lines/c.spool
rm -r lines
offers 'spoolcat x:' y
offers 'spoolcat folder/' folder/inner.spool
offers 'spoolcat my\ ' 'my cap.spool'
offers "spoolcat 'my c" 'my cap.spool'
offers 'spoolcat --output=t' text.txt
offers 'spoolcat -o t' text.txt
offers 'spoolcat -ot' -otext.txt
offers 'spoolcat --kallsyms t' text.txt
offers 'spoolcat --symbols=' text.txt store.tar.gz x:y "${files[@]}"
offers 'spoolcat --sysroot=' folder 'a folder' x.spool.d
offers 'spoolcat --debug-dir f' folder
offers 'spoolpack --list s' store.tar.gz

# Processes; commands, which are command lines of their own.
for line in 'spoolrecord -p ' 'spoolrecord --pid=1,'; do
    complete_line "$line"
    printf '%s\n' "${COMPREPLY[@]}" | grep -qE "^(1,)?$$\$" || die "'$line' does not offer $$"
done
offers 'spoolrecord spoolca' spoolcat
offers 'spoolrecord -o x -- spoolca' spoolcat
offers 'spoolrecord ../work/fol' ../work/folder
offers 'spoolrecord -k spoolcat --summ' --summary
offers 'spoolrecord --event=cycles -- spoolcat --color=al' always
offers 'spoolrecord -o spoolcat --fo' --force --format
offers 'spoolrecord nothing-completes-this te' text.txt
line='spoolrecord -d 2 -- seen --a=b c'
seen() { COMPREPLY=("$COMP_CWORD $COMP_POINT $COMP_LINE|$1|$2|$3|${COMP_WORDS[*]}"); }
complete -F seen seen
offers "$line" '4 12 seen --a=b c|seen|c|b|seen --a = b c'
_command_offset() { COMPREPLY=("from $1 on"); } # as bash-completion has it
offers 'spoolrecord -d 2 -- git com' 'from 4 on'
