// The front page is the web page at /, which shows people what the server does. It is one HTML
// document without external parts, made of the files in server/http/page and compiled into the
// server (cmake/web_page.cmake).
//
// Thread-safety: the page is made when it is first asked for, and does not change after that.
#pragma once

#include <string>
#include <string_view>

namespace varve {

struct FrontPage {
  std::string_view html;
  // The Content-Security-Policy: the page's own style and script, known by their hashes, and
  // requests to the server that it came from.
  std::string policy;
};

const FrontPage& TheFrontPage();

}  // namespace varve
