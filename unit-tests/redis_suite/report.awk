# report.awk [-v some=FILE] skips.txt results.log: what failed, how many tests ran, and how many were left out for which reason. Fails
# when a name of skips.txt is no test's, or when nothing ran. With `some`, only the names that FILE has, too, need to be tests'.
function name(line) {
  sub(/^\[[a-z]+\]: /, "", line)
  sub(/ \([0-9]+ ms\)$/, "", line)
  return line
}
BEGIN { while (some && (getline line <some) > 0) named[line] = 1 }
FNR == NR && /^## / { reason = substr($0, 4); reasons[++count] = reason }
FNR == NR && !/^(#|--|$)/ { why[$0] = reason; known[$0] = 0 }
FNR == NR { next }
# Each failure is told twice, the second time behind a ***.
/^\[(err|exception)\]/ { failing = 1; ++failed }
/^\[[a-z]+\]|^\[[0-9]+\/|^\*\*\*|^Testing|^ *The End/ { failing = failing && /^\[e/ }
failing { print }
/^\[ok\]/ { ++passed; if (name($0) in why) passing[name($0)] }
/^\[skip\]/ { ++skips; ++known[name($0)]; ++skipped[why[name($0)]] }
/^\[ignore\]/ { reason = name($0); sub(/.*: /, "", reason); ++ignored[reason] }
END {
  printf "%d tests passed, %d failed; left out:\n", passed, failed
  for (i = 1; i <= count; ++i) if (skipped[reasons[i]]) printf "%5d  %s\n", skipped[reasons[i]], reasons[i]
  for (reason in ignored) printf "%5d  tests or groups of them, by the suite itself: %s\n", ignored[reason], reason
  for (test in passing) print "named in skips.txt, and passes: " test
  for (test in known) if (skips && !known[test] && (!some || test in named)) { print "skips.txt: there is no test \"" test "\""; wrong = 1 }
  exit wrong || !passed
}
