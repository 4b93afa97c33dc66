#!/bin/sh
# page.sh PAGE SERVER CLIENT VERSION: prints the scdoc source of a manual page: PAGE is varve-server.8, varve.1 or varve.toml.5.
# SERVER and CLIENT are the programs, whose own --help and --example-config are the page's lists of options, so that a page
# cannot say anything else than its program. The page's other text is beside this script, in PAGE.scd.
set -eu
page=$1 server=$2 client=$3 version=$4
here=$(dirname "$0")

# What scdoc would take for emphasis is text.
escape() {
  sed -e 's/[\\_*<>#~]/\\&/g'
}

# "  --name=value" and the indented lines behind it become a term and its explanation.
options() {
  "$server" --help | escape | awk '
    /^  --/ { if (in_text) print ""; in_text = 0; sub(/^ +/, ""); print "*" $0 "*"; next }
    /^      / { sub(/^ +/, ""); print "\t" $0 "\n"; next }
    /^Settings/ { in_text = 1; print "" }
    in_text { print }'
}

# A comment and the commented-out setting behind it become a term and its explanation. The first comment is about the file.
settings() {
  "$server" --example-config | escape | awk -v RS= -F '\n' 'NR > 1 {
    gsub(/(^|\n)\\# /, "\n")
    sub(/^\n/, "")
    $0 = $0
    print "*" $NF "*"
    for (i = 1; i < NF; ++i) print "\t" $i
    print ""
  }'
}

usage() {
  echo '```'
  "$client" --help
  echo '```'
}

while IFS= read -r line; do
  case $line in
    @OPTIONS@) options ;;
    @SETTINGS@) settings ;;
    @USAGE@) usage ;;
    *) printf '%s\n' "$line" | sed "s/@VERSION@/$version/g" ;;
  esac
done < "$here/$page.scd"
