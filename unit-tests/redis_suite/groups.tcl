# The client of Redis' tests, where keys are written together only within a group: behind this, database N is the namespace dbN, whose
# keys are one group. FLUSHALL, which leaves named namespaces alone, empties the one in use. Read behind tests/support/redis.tcl.
rename ::redis::__dispatch__raw__ ::redis::__dispatch__in_groups__
proc ::redis::__dispatch__raw__ {id method argv} {
    switch -nocase -- $method {
        select {
            if {[llength $argv] == 1 && [string is digit -strict [lindex $argv 0]]} {
                set method namespace
                set argv [list use db[lindex $argv 0]]
            }
        }
        flushall { set method flushdb }
    }
    tailcall ::redis::__dispatch__in_groups__ $id $method $argv
}
