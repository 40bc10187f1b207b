# From here on the completion of every tool is the same. What is above is the tool's table of options:
#   _TOOL_table         sets options and files (patterns of operands), and command where operands are a command
#   _TOOL_value OPTION  sets kind and words to what the option takes; fails if it takes nothing
# Neither a package of completions nor any other program is needed.

# Whether the word is what readline keeps of the characters that end words for it, but not for the shell.
_TOOL_is_break()
{
    [[ $1 =~ ^[=:]+$ ]]
}

# Offers the arguments, as far as they begin with the value.
_TOOL_offer()
{
    local candidate

    for candidate; do
        if [[ $candidate == "$value"* && -n $candidate ]]; then
            candidate=$prefix$candidate
            COMPREPLY+=("${candidate#"$strip"}")
        fi
    done
}

# Offers files that match a pattern, and folders; any file when there is none of them. compgen prints one name a line:
# a name with a newline would be two, and is left out.
_TOOL_offer_files()
{
    local pattern newline=$'\n'
    local -a found

    compopt -o filenames 2>/dev/null
    mapfile -t found <<<"$(
        shopt -s extglob
        for pattern; do compgen -f -X "!${pattern//'*'/"*([!$newline])"}" -- "$value"; done
        compgen -d -X "*$newline*" -- "$value"
    )"
    if [ -z "${found[0]}" ]; then
        mapfile -t found <<<"$(compgen -f -X "*$newline*" -- "$value")"
    fi
    _TOOL_offer "${found[@]}"
}

# Completes a command whose name is word $1, as if what stands before it were not there.
_TOOL_command()
{
    local word spec line=${COMP_LINE-} at=$1

    if declare -F _comp_command_offset >/dev/null; then # of bash-completion
        _comp_command_offset "$at"
        return
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$at"
        return
    fi
    spec=$(complete -p -- "${COMP_WORDS[at]##*/}" 2>/dev/null) || spec=
    if ((COMP_CWORD == at)); then
        mapfile -t words <<<"$(compgen -c -X $'*\n*' -- "$value")"
        compopt -o filenames 2>/dev/null
        _TOOL_offer "${words[@]}"
    elif [[ $spec =~ \ -F\ ([^ ]+) ]]; then
        for word in "${COMP_WORDS[@]:0:at}"; do
            line=${line#*"$word"}
        done
        line=${line#"${line%%[![:blank:]]*}"}
        local COMP_POINT=$((${COMP_POINT-0} - ${#COMP_LINE} + ${#line})) COMP_CWORD=$((COMP_CWORD - at))
        local COMP_LINE=$line
        COMP_WORDS=("${COMP_WORDS[@]:at}")
        "${BASH_REMATCH[1]}" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    else
        _TOOL_offer_files '*'
    fi
}

_TOOL()
{
    local command='' only_operands='' takes='' glue='' kind='' prefix='' strip='' word value raw i j last
    local -a options files words args=() at=()

    COMPREPLY=()
    _TOOL_table
    # --option=value is three words for readline.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((${#args[@]} > 0)) && [ -n "$word" ] && { [ -n "$glue" ] || _TOOL_is_break "$word"; }; then
            args[${#args[@]} - 1]+=$word
        else
            args+=("$word")
            at+=("$i")
        fi
        glue=
        if _TOOL_is_break "$word"; then glue=1; fi
    done

    # What stands before the word that is completed.
    last=$((${#args[@]} - 1))
    for ((i = 0; i < last; i++)); do
        word=${args[i]}
        if [ -n "$takes" ]; then
            takes=
        elif [ -n "$only_operands" ] || [[ $word != -?* ]]; then
            if [ -n "$command" ]; then break; fi
        elif [ "$word" = -- ]; then
            only_operands=1
        elif [[ $word == --* ]]; then
            if [[ $word != *=* ]] && _TOOL_value "$word"; then takes=$word; fi
        else
            for ((j = 1; j < ${#word}; j++)); do
                if _TOOL_value "-${word:j:1}"; then
                    if ((j == ${#word} - 1)); then takes=-${word:j:1}; fi
                    break
                fi
            done
        fi
    done

    value=${args[last]}
    raw=${COMP_WORDS[COMP_CWORD]}
    if _TOOL_is_break "$raw"; then raw=; fi
    strip=${value%"$raw"} # what readline keeps
    if ((i < last)); then
        _TOOL_command "${at[i]}"
        return 0
    elif [ -n "$takes" ]; then
        _TOOL_value "$takes"
    elif [ -n "$only_operands" ] || [[ $value != -* ]]; then
        if [ -n "$command" ]; then
            _TOOL_command "${at[last]}"
            return 0
        fi
        kind=operand
    elif [[ $value == --*=* ]]; then
        _TOOL_value "${value%%=*}" || return 0
        prefix=${value%%=*}=
    elif [[ $value == -[!-]?* ]] && _TOOL_value "${value:0:2}"; then
        prefix=${value:0:2}
    else
        kind=option
    fi
    value=${value#"$prefix"}
    case $value in
    [\'\"]*) value=${value:1} ;;
    *) value=${value//\\/} ;;
    esac
    strip=${strip//\\/}

    case $kind in
    option) _TOOL_offer "${options[@]}" ;;
    operand) _TOOL_offer_files "${files[@]}" ;;
    file) _TOOL_offer_files '*' ;;
    folder) _TOOL_offer_files ;;
    list | pids)
        if [ "$kind" = pids ]; then
            words=(/proc/[0-9]*)
            words=("${words[@]#/proc/}")
        fi
        prefix+=${value%"${value##*,}"}
        value=${value##*,}
        _TOOL_offer "${words[@]}"
        ;;
    *) _TOOL_offer "${words[@]}" ;;
    esac
    return 0
}

complete -F _TOOL TOOL
