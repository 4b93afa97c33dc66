# bash completion of varve, Varve's client. Commands and options are those that `varve --help` lists, so that they are always
# the program's own.
_varve() {
  local cur prev words cword
  _init_completion -n = || return
  local help
  help=$("${words[0]}" --help 2>/dev/null) || return
  case $cur in
    -*=*) return ;;
    -*)
      mapfile -t COMPREPLY < <(compgen -W "$(grep -oE -- '(^|[^-[:alnum:]])--?[a-z][a-z-]*=?' <<<"$help" | grep -oE -- '--?[a-z].*')" -- "$cur")
      [[ ${COMPREPLY-} == *= ]] && compopt -o nospace
      return
      ;;
  esac
  local word
  for word in "${words[@]:1:cword-1}"; do
    # Behind the command stand keys, or files.
    if [[ $word != -* && $word != = ]]; then
      _filedir
      return
    fi
  done
  mapfile -t COMPREPLY < <(compgen -W "$(awk '/^$/ { if (seen) exit } /^  [a-z]/ { print $1; seen = 1 }' <<<"$help")" -- "$cur")
} && complete -F _varve varve
