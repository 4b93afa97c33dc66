#!/usr/bin/env bash
# check_completion.sh SERVER_MAIN CLIENT_MAIN DIRECTORY: bash and zsh complete the commands and options that the programs have. Exits
# with 77 (skipped) where bash-completion is missing; without zsh only bash is tried.
set -euo pipefail
server=$(realpath "$1") client=$(realpath "$2") directory=$3
completion=$(cd "$(dirname "$0")/../../packaging/completion" && pwd)
library=/usr/share/bash-completion/bash_completion
[ -e "$library" ] || { echo "SKIPPED: bash-completion is not installed (packages-test.txt names what these tests need)" && exit 77; }

rm -rf "$directory"
mkdir -p "$directory"
ln -s "$server" "$directory/varve-server"
ln -s "$client" "$directory/varve"
export PATH=$directory:$PATH

# complete PROGRAM FUNCTION WORD ...: what bash offers for the last word, one a line.
complete_in_bash() {
  bash -c '
    set +eu
    source "$1"
    source "$2/$3.bash"
    COMP_WORDS=("${@:4}") COMP_CWORD=$(($# - 4)) COMP_LINE="${*:4}" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
    compopt() { :; }
    "_${3//-/_}" "$3" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf "%s\n" "${COMPREPLY[@]}"' bash "$library" "$completion" "$1" "$@" | sort
}

expect() {
  local what=$1 offered=$2 wanted=$3
  grep -qxF -- "$wanted" <<<"$offered" || { echo "$what does not offer $wanted, but: $offered" && exit 1; }
}

expect "bash: varve ex" "$(complete_in_bash varve ex)" export
commands=$(complete_in_bash varve "")
for command in $("$client" --help | awk '/^$/ { if (seen) exit } /^  [a-z]/ { print $1; seen = 1 }'); do
  expect "bash: varve" "$commands" "$command"
done
expect "bash: varve --name" "$(complete_in_bash varve --name)" --namespace=
expect "bash: varve --js" "$(complete_in_bash varve --js)" --json
touch "$directory/ca.pem"
expect "bash: varve -h db ex" "$(complete_in_bash varve -h db ex)" export
expect "bash: varve --host db --port 7 ex" "$(complete_in_bash varve --host db --port 7 ex)" export
[ -z "$(complete_in_bash varve -h ex)" ] || { echo "bash offers something for the value of -h" && exit 1; }
expect "bash: varve --cacert=ca" "$(cd "$directory" && complete_in_bash varve --cacert=ca)" ca.pem
expect "bash: varve --cacert ca" "$(cd "$directory" && complete_in_bash varve --cacert ca)" ca.pem
expect "bash: varve get ca" "$(cd "$directory" && complete_in_bash varve get ca)" ca.pem
expect "bash: varve --ke" "$(complete_in_bash varve --ke)" --keep=
mkdir "$directory/dest"
touch "$directory/desk"
expect "bash: varve backup de" "$(cd "$directory" && complete_in_bash varve backup de)" dest
[[ $(cd "$directory" && complete_in_bash varve backup de) != *desk* ]] || { echo "bash offers a file for a directory" && exit 1; }
expect "bash: varve-server --maxc" "$(complete_in_bash varve-server --maxc)" --maxclients=
touch "$directory/some.toml"
expect "bash: varve-server --config" "$(cd "$directory" && complete_in_bash varve-server --config so)" some.toml

command -v zsh >/dev/null || exit 0
# zsh completes only at a prompt: on a terminal of its own, a key shows what is offered.
offered=$(cd "$directory" && timeout 60 zsh -f -c '
  zmodload zsh/zpty
  zpty shell "zsh -f -i"
  zpty -w shell "PS1= PROMPT= RPROMPT=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -d $2/zcompdump; LISTMAX=10000; setopt no_always_last_prompt; print read\y"
  zpty -r -m shell line "*ready*"
  zpty -w -n shell "varve --name"$'"'\t'"'
  zpty -r -m shell line "*--namespace=*" && print -r -- "$line"
  zpty -w -n shell $'"'\C-u'"'"varve ex"$'"'\t'"'
  zpty -r -m shell line "*varve export*" && print -r -- "$line"
  zpty -w -n shell $'"'\C-u'"'"varve -h db ex"$'"'\t'"'
  zpty -r -m shell line "*varve -h db export*" && print -r -- "$line"
  zpty -w -n shell $'"'\C-u'"'"varve --cacert=ca"$'"'\t'"'
  zpty -r -m shell line "*--cacert=ca.pem*" && print -r -- "$line"
  zpty -d shell' zsh "$completion" "$directory" 2>&1) || offered="$offered (no answer within 60 s)"
for wanted in --namespace= "varve export" "varve -h db export" --cacert=ca.pem; do
  grep -qF -- "$wanted" <<<"$offered" || { echo "zsh does not complete $wanted: $offered" && exit 1; }
done
