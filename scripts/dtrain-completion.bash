# Completion in bash of dtrain's programs: their commands, flags, the choices of a flag, and files. What there is, the
# programs say themselves: a line each for PROGRAM [COMMAND] --help=list.
_dtrain() {
  COMPREPLY=()
  local words="${COMP_LINE:0:COMP_POINT}" current="" flag="" command=() list name kind
  # Bash takes --flag=value for three words where COMP_WORDBREAKS has the equals sign, which is the default.
  words=${words##*[[:space:]]}
  current=$words
  if [[ $words == --*=* ]]; then
    flag=${words%%=*} current=${words#*=}
  elif ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[COMP_CWORD - 1]} == --* ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 1]}
  fi
  list=$("${COMP_WORDS[0]}" --help=list 2>/dev/null) || return 0
  if [[ $list == *$'\t'command$'\t'* && $COMP_CWORD -gt 1 ]]; then
    command=("${COMP_WORDS[1]}")
    list=$("${COMP_WORDS[0]}" "${command[@]}" --help=list 2>/dev/null) || return 0
  fi
  local names=() choices=()
  while IFS=$'\t' read -r name kind _; do
    names+=("$name")
    [[ $kind != bool || $name == --help || $name == --version ]] || names+=("--no${name#--}")
    # A switch takes a value after an equals sign alone.
    [[ $name == "$flag" && ($kind != bool || $words == *=*) ]] || continue
    case $kind in
      bool) choices=(true false) ;;
      *"|"*) IFS="|" read -ra choices <<<"$kind" ;;
      int | float) return 0 ;;
      *) choices=() ;;
    esac
    COMPREPLY=()
    if ((${#choices[@]})); then
      mapfile -t COMPREPLY < <(compgen -W "${choices[*]}" -- "$current")
    else
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
    return 0
  done <<<"$list"
  if [[ $current == -* || (${#command[@]} == 0 && $list == *$'\t'command$'\t'*) ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$current")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _dtrain @programs@
