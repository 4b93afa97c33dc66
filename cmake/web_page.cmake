# Makes the web page of the server, one HTML document, and a C++ source that holds its bytes:
#   cmake -D PAGE=server/http/page -D OUTPUT=front_page_html.cc -P web_page.cmake
# Where page.html says @STYLE@ and @SCRIPT@, it gets page.css and the scripts, in the order below.
set(scripts text.js charts.js key_map.js strata.js tables.js page.js)

set(script "")
foreach(name ${scripts})
  file(READ ${PAGE}/${name} text)
  string(APPEND script "${text}\n")
endforeach()
file(READ ${PAGE}/page.css style)
file(READ ${PAGE}/page.html html)
string(REPLACE "@STYLE@" "${style}" html "${html}")
string(REPLACE "@SCRIPT@" "${script}" html "${html}")
file(WRITE ${OUTPUT}.html "${html}")

file(READ ${OUTPUT}.html bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
if(size GREATER 200000)
  message(FATAL_ERROR "the web page has ${size} bytes, 200000 at most")
endif()
# Sixteen bytes on a line, as escapes.
string(REPEAT "[0-9a-f]" 32 line)
string(REGEX REPLACE "(${line})" "\\1\"\n\"" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
file(WRITE ${OUTPUT}
     "#include <cstddef>\n\nnamespace varve {\n\nextern const char kFrontPageHtml[];\n"
     "extern const size_t kFrontPageSize;\n"
     "const char kFrontPageHtml[] =\n\"${bytes}\";\nconst size_t kFrontPageSize = ${size};\n\n}  // namespace varve\n")
