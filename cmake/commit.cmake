# Writes a C++ source that says from which commit the tree is built:
#   cmake -D SOURCE=tree -D OUTPUT=commit.cc [-D COMMIT=0123456789ab] -P commit.cmake
# COMMIT is what a tree without git's files was told; where it is empty, git is asked. The source is rewritten only when the commit is
# another one, so that a build compiles and links anew what depends on it, and nothing else.
if(NOT COMMIT)
  # The tree has to be the top of its repository: an exported tree may lie in a repository of something else.
  execute_process(COMMAND git -C ${SOURCE} rev-parse --show-cdup RESULT_VARIABLE result OUTPUT_VARIABLE way_up ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(result EQUAL 0 AND way_up STREQUAL "")
    execute_process(COMMAND git -C ${SOURCE} rev-parse --verify --quiet --short=12 HEAD OUTPUT_VARIABLE COMMIT ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
if(NOT COMMIT)
  set(COMMIT unknown)
elseif(NOT COMMIT MATCHES "^[0-9A-Za-z._+~-]+$")
  message(FATAL_ERROR "VARVE_COMMIT=${COMMIT}: takes letters, digits and . _ + ~ -")
endif()

set(text "#include \"type/version.h\"\n\nnamespace varve {\n\nconst char* const kVarveCommit = \"${COMMIT}\";\n\n}  // namespace varve\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
