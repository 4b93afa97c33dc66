#include "util/resp/resp_reply.h"

#include <optional>

#include "util/resp/resp_parser.h"
#include "util/resp/resp_writer.h"

namespace varve {
namespace {

constexpr int kMaxDepth = 80;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  size_t position() const { return position_; }

  ReplyResult Read(Reply* reply, int depth) {
    if (depth > kMaxDepth) return ReplyResult::kError;
    *reply = Reply();
    if (position_ >= bytes_.size()) return ReplyResult::kNeedMore;
    const char marker = bytes_[position_];
    const size_t end = bytes_.find("\r\n", position_ + 1);
    if (end == std::string_view::npos) return ReplyResult::kNeedMore;
    const std::string_view line = bytes_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 2;
    switch (marker) {
      case '+':
        return Text(reply, Reply::Type::kSimple, line);
      case '-':
        return Text(reply, Reply::Type::kError, line);
      case ',':
        return Text(reply, Reply::Type::kDouble, line);
      case '_':
        return ReplyResult::kReply;
      case '#':
        reply->type = Reply::Type::kBool;
        reply->integer = line == "t";
        return ReplyResult::kReply;
      case ':':
        reply->type = Reply::Type::kInteger;
        return ParseRespInteger(line, &reply->integer) ? ReplyResult::kReply : ReplyResult::kError;
      case '$':
      case '=':
        return Bulk(reply, line, marker == '=');
      case '*':
      case '~':
        return Elements(reply, Reply::Type::kArray, line, 1, depth);
      case '>':
        return Elements(reply, Reply::Type::kPush, line, 1, depth);
      case '%':
        return Elements(reply, Reply::Type::kMap, line, 2, depth);
      default:
        return ReplyResult::kError;
    }
  }

 private:
  static ReplyResult Text(Reply* reply, Reply::Type type, std::string_view text) {
    reply->type = type;
    reply->text.assign(text);
    return ReplyResult::kReply;
  }

  ReplyResult Bulk(Reply* reply, std::string_view header, bool verbatim) {
    int64_t length = 0;
    if (!ParseRespInteger(header, &length) || length < -1) return ReplyResult::kError;
    if (length < 0) return ReplyResult::kReply;
    const size_t size = static_cast<size_t>(length);
    if (bytes_.size() - position_ < size + 2) return ReplyResult::kNeedMore;
    std::string_view text = bytes_.substr(position_, size);
    position_ += size + 2;
    if (verbatim) text.remove_prefix(size < 4 ? size : 4);
    reply->is_verbatim = verbatim;
    return Text(reply, Reply::Type::kBulk, text);
  }

  ReplyResult Elements(Reply* reply, Reply::Type type, std::string_view header, int64_t each,
                       int depth) {
    int64_t count = 0;
    if (!ParseRespInteger(header, &count) || count < -1 || count > INT64_MAX / each)
      return ReplyResult::kError;
    if (count < 0) return ReplyResult::kReply;
    for (int64_t i = 0; i < count * each; ++i) {
      const ReplyResult result = Read(&reply->elements.emplace_back(), depth + 1);
      if (result != ReplyResult::kReply) return result;
    }
    reply->type = type;
    return ReplyResult::kReply;
  }

  std::string_view bytes_;
  size_t position_ = 0;
};

}  // namespace

ReplyResult ParseReply(std::string_view bytes, Reply* reply, size_t* consumed) {
  Reader reader(bytes);
  const ReplyResult result = reader.Read(reply, 0);
  if (result == ReplyResult::kReply) *consumed = reader.position();
  return result;
}

void AppendRequest(absl::Span<const std::string_view> arguments, ByteBuffer* out) {
  RespWriter writer(out);
  writer.Array(arguments.size());
  for (const std::string_view argument : arguments) writer.Bulk(argument);
}

}  // namespace varve
