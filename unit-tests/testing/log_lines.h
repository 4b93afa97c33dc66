// The log lines collect what the program logs, debug lines included, while they live.
#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace varve::testing {

// Requires: no other thread logs while one begins or ends its life.
class LogLines {
 public:
  LogLines() : level_(spdlog::get_level()) {
    spdlog::default_logger()->sinks().push_back(sink_);
    spdlog::set_level(spdlog::level::debug);
  }
  ~LogLines() {
    spdlog::default_logger()->sinks().pop_back();
    spdlog::set_level(level_);
  }

  // Requires: no other thread logs any more.
  std::string text() const { return text_.str(); }
  // Returns how often the lines hold `piece`.
  size_t Count(std::string_view piece) const {
    const std::string all = text();
    size_t count = 0;
    for (size_t at = 0; (at = all.find(piece, at)) != std::string::npos; ++at) ++count;
    return count;
  }

 private:
  const spdlog::level::level_enum level_;
  std::ostringstream text_;
  const std::shared_ptr<spdlog::sinks::sink> sink_ =
      std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
};

}  // namespace varve::testing
