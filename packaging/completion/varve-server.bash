# bash completion of varve-server. The settings are those that `varve-server --help` lists.
_varve_server() {
  local cur prev words cword split
  _init_completion -s || return
  case $prev in
    --config | --*file | --*socket)
      _filedir
      return
      ;;
    --dir)
      _filedir -d
      return
      ;;
  esac
  $split && return
  mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*=?')" -- "$cur")
  [[ ${COMPREPLY-} == *= ]] && compopt -o nospace
} && complete -F _varve_server varve-server
