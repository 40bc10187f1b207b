#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What zsh completes by what the tools print: options, the words of values, files, processes, commands.
. "$(dirname "$0")/_completion.sh"

for tool in "${tools[@]}"; do
    script=$BUILD/completion/zsh/_$tool
    "$tool" --completion=zsh | cmp - "$script" || die "$script is not what $tool prints"
    zsh -n "$script"
    [ "$(head -1 "$script")" = "#compdef $tool" ] || die "$(head -1 "$script")"
done

# An interactive zsh on a terminal of its own takes each line of `lines', lets its completion list what there is, and
# keeps what is added as a match. The tools' files are in fpath, but spoolcat's script is evaluated.
cat >shell.zsh <<'END'
fpath=($BUILD/completion/zsh $fpath)
autoload -Uz compinit
compinit -u -D
unset '_comps[spoolcat]'
eval "$(spoolcat --completion=zsh)"
zstyle ':completion:*:processes' command 'ps -A'
LISTMAX=1000
compadd() {
    local -a hits
    case " ${(j: :)@[1,(i)(-|--)]}" in
    *' -'(O|A|D)' '*) ;;
    *)
        builtin compadd -O hits "$@"
        (($#hits)) && print -rl -- "${(@)hits/#/> }" >>../answers
        ;;
    esac
    builtin compadd "$@"
}
ask() {
    local line
    while IFS= read -r line; do
        print -r -- "$line" >>../answers
        BUFFER=$line CURSOR=$#line
        zle list-choices
    done <../lines
    BUFFER=
    touch ../done
}
zle -N ask
bindkey '^G' ask
touch ../ready
END
cat >drive.zsh <<'END'
zmodload zsh/zpty
zpty -b shell 'cd work && stty rows 200 cols 150 && zsh -f -i'
zpty -w shell 'source ../shell.zsh'
wait_for() {
    repeat 400; do
        while zpty -rt shell text; do print -rn -- $text >>screen; done
        [ -e $1 ] && return
        sleep 0.05
    done
    print -r "no $1" && exit 1
}
wait_for ready
zpty -w -n shell $'\a'
wait_for done
zpty -d shell
END

for tool in "${tools[@]}"; do
    printf '%s\n' "$tool -" "$tool --" "$tool --completion="
done >lines
cat >>lines <<'END'
spool2folded --no-i
spoolcat --quiet --qui
spoolpack --no-s
spool2folded --root=
spool2folded --root 
spool2folded --root=p
spool2folded --root process --kernel=d
spoolrecord -F 
spoolrecord -kF 
spool2folded --perf-maps=a
spool2pprof --labels=pid,t
spoolcat 
spoolcat --color=always 
spoolcat te
spoolcat folder/
spoolcat --output=t
spoolcat -o t
spoolcat --sysroot=
spoolcat --debug-dir f
spoolpack --list s
spoolrecord -p 
spoolrecord --pid=1,
spoolrecord -o x -- spoolca
spoolrecord -k spoolcat --summ
spoolrecord --event=cycles -- spoolcat --color=al
spoolrecord spoolcat --color=always c
END
sleep 60 & # a process to be found
process=$!
trap 'kill $process' EXIT
zsh -f drive.zsh || die "$(tail -c 1000 screen)"

# offers LINE ANSWER...: nothing but these, in any order. Without - itself, which zsh takes for the name of a command.
offers() {
    awk -v line="$1" '$0 !~ /^> / { on = $0 == line } on && /^> / { print substr($0, 3) }' answers | sed 's/=$//; s/\\//g; /^-$/d' | sort -u >answer
    printf '%s\n' "${@:2}" | grep . | sort >wanted || true
    diff wanted answer || die "'$1' does not offer what is wanted (<)"
}
for tool in "${tools[@]}"; do
    mapfile -t wanted < <(options "$tool")
    offers "$tool -" "${wanted[@]}"
    mapfile -t wanted < <(options "$tool" long)
    offers "$tool --" "${wanted[@]}"
    offers "$tool --completion=" bash zsh
done
offers 'spool2folded --no-i' --no-inlines
offers 'spoolcat --quiet --qui' --quiet
offers 'spoolpack --no-s'
offers 'spool2folded --root=' none process pid thread
offers 'spool2folded --root ' none process pid thread
offers 'spool2folded --root=p' process pid
offers 'spool2folded --root process --kernel=d' drop
offers 'spoolrecord -F ' max
offers 'spoolrecord -kF ' max
offers 'spool2folded --perf-maps=a' auto all
offers 'spool2pprof --labels=pid,t' tid thread
files=(cap.spool cap.spool.gz 'my cap.spool' folder 'a folder' x.spool.d)
offers 'spoolcat ' "${files[@]}"
offers 'spoolcat --color=always ' "${files[@]}"
offers 'spoolcat te' text.txt
offers 'spoolcat folder/' inner.spool
offers 'spoolcat --output=t' text.txt
offers 'spoolcat -o t' text.txt
offers 'spoolcat --sysroot=' folder 'a folder' x.spool.d
offers 'spoolcat --debug-dir f' folder
offers 'spoolpack --list s' store.tar.gz
offers 'spoolrecord -o x -- spoolca' spoolcat
offers 'spoolrecord -k spoolcat --summ' --summary
offers 'spoolrecord --event=cycles -- spoolcat --color=al' always
offers 'spoolrecord spoolcat --color=always c' cap.spool cap.spool.gz
for line in 'spoolrecord -p ' 'spoolrecord --pid=1,'; do
    sed -n "/^$line\$/,/^[^>]/p" answers | grep -qx "> $process" || die "'$line' does not offer $process"
done
