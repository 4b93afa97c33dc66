#include "server/http/front_page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <cstddef>

#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {

// The bytes of the page, which the build makes.
extern const char kFrontPageHtml[];
extern const size_t kFrontPageSize;

namespace {

// Returns what stands between the tags of the only element of that name.
std::string_view ContentOf(std::string_view html, std::string_view name) {
  const std::string opening = fmt::format("<{}>", name);
  const size_t begin = html.find(opening);
  const size_t end = html.find(fmt::format("</{}>", name));
  VARVE_ASSERT(begin != std::string_view::npos && end != std::string_view::npos && begin < end);
  return html.substr(begin + opening.size(), end - begin - opening.size());
}

// Returns the text's hash as a source of Content-Security-Policy.
std::string SourceOf(std::string_view text) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash);
  unsigned char base64[(sizeof(hash) + 2) / 3 * 4 + 1];
  EVP_EncodeBlock(base64, hash, sizeof(hash));
  return fmt::format("'sha256-{}'", reinterpret_cast<const char*>(base64));
}

FrontPage MakeFrontPage() {
  FrontPage page{.html = {kFrontPageHtml, kFrontPageSize}};
  page.policy = fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      SourceOf(ContentOf(page.html, "script")), SourceOf(ContentOf(page.html, "style")));
  return page;
}

}  // namespace

const FrontPage& TheFrontPage() {
  static const FrontPage page = MakeFrontPage();
  return page;
}

}  // namespace varve
