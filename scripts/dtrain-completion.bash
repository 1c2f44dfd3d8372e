# Bash completion of dtrain's programs: commands, flags, values of a flag, and files. The list comes from
# PROGRAM [COMMAND] --help=list, one line per command or flag.
_dtrain() {
  local typed=${COMP_LINE:0:COMP_POINT} program=${COMP_WORDS[0]} files=no flag= list name kind
  local words=() commands=() prefix=
  COMPREPLY=()
  typed=${typed##*[[:space:]]}
  local current=$typed
  if [[ $typed == --*=* ]]; then
    flag=${typed%%=*} current=${typed#*=}
    # By default `=` is in COMP_WORDBREAKS, so completions replace only the text after it.
    [[ $COMP_WORDBREAKS == *=* ]] || prefix=$flag=
  elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == --* ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 1]}
  fi

  list=$("$program" --help=list 2>/dev/null) || return 0
  if ((COMP_CWORD > 1)) && [[ $'\n'$list == *$'\n'"${COMP_WORDS[1]}"$'\tcommand\t'* ]]; then
    list=$("$program" "${COMP_WORDS[1]}" --help=list 2>/dev/null) || return 0
  fi

  while IFS=$'\t' read -r name kind _; do
    if [[ $kind == command ]]; then
      commands+=("$name")
      continue
    fi
    words+=("$name")
    # A program whose flags belong to its commands takes no files.
    [[ $kind == asks ]] || files=yes
    [[ $kind != bool ]] || words+=("--no${name#--}")
    # A boolean flag takes a value only after `=`.
    [[ $name == "$flag" ]] && [[ $kind != bool && $kind != asks || $typed == *=* ]] || continue
    case $kind in
      bool) words=(true false) ;;
      *"|"*) IFS="|" read -ra words <<<"$kind" ;;
      string | list) _dtrain_files "$current" "$prefix"; return 0 ;;
      *) return 0 ;;
    esac
    mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "${words[*]}" -- "$current")
    return 0
  done <<<"$list"
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$current")
    return 0
  fi
  ((COMP_CWORD > 1)) || mapfile -t COMPREPLY < <(compgen -W "${commands[*]}" -- "$current")
  [[ $files == no ]] || _dtrain_files "$current" ""
}
_dtrain_files() {
  compopt -o filenames 2>/dev/null || true  # appends a slash to folders; fails outside of a completion
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -P "$2" -f -- "$1")
}
complete -F _dtrain @programs@
