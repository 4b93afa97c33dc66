# bash completion of varve, Varve's client. Commands and options are those that `varve --help` lists, so that they are always
# the program's own.
_varve() {
  local cur prev words cword
  _init_completion -n = || return
  local help
  help=$("${words[0]}" --help 2>/dev/null) || return
  case $cur in
    --cacertdir=*)
      cur=${cur#*=}
      _filedir -d
      return
      ;;
    --cacert=* | --cert=* | --key=* | --unixsocket=*)
      cur=${cur#*=}
      _filedir
      return
      ;;
    -*=*) return ;;
  esac
  case $prev in
    --cacertdir)
      _filedir -d
      return
      ;;
    --cacert | --cert | --key | --unixsocket | -s)
      _filedir
      return
      ;;
  esac
  # A long option with a value ends in = there; the short ones are redis-cli's.
  local assigned
  assigned=" -h -p -s -n -a -u --pass $(grep -oE -- '--[a-z][a-z-]*=' <<<"$help" | tr -d = | tr '\n' ' ')"
  [[ $assigned == *" $prev "* ]] && return
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(grep -oE -- '(^|[^-[:alnum:]])--?[a-z][a-z-]*=?' <<<"$help" | grep -oE -- '--?[a-z].*')" -- "$cur")
    [[ ${COMPREPLY-} == *= ]] && compopt -o nospace
    return
  fi
  local word before=
  for word in "${words[@]:1:cword-1}"; do
    # Behind the command stand keys, or files.
    if [[ $word != -* && $word != = && $assigned != *" $before "* ]]; then
      case $word in
        archive | archive-check | backup | backups | restore | verify | repair | dump-manifest) _filedir -d ;;
        *) _filedir ;;
      esac
      return
    fi
    before=$word
  done
  mapfile -t COMPREPLY < <(compgen -W "$(awk '/^$/ { if (seen) exit } /^  [a-z]/ { print $1; seen = 1 }' <<<"$help")" -- "$cur")
} && complete -F _varve varve
