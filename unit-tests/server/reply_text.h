// A reply as one line that tests compare: text, "nil", "(1 2 3)" for arrays, "!..." for errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "type/reply.h"

namespace varve::testing {

inline std::string ReplyText(const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::kNull:
      return "nil";
    case Reply::Type::kError:
      return "!" + reply.text;
    case Reply::Type::kInteger:
    case Reply::Type::kBool:
      return std::to_string(reply.integer);
    case Reply::Type::kArray:
    case Reply::Type::kMap:
    case Reply::Type::kPush: {
      std::string text = "(";
      for (const Reply& element : reply.elements)
        text += (&element == &reply.elements[0] ? "" : " ") + ReplyText(element);
      return text + ")";
    }
    default:
      return reply.text;
  }
}

inline std::string Ask(Client& client, const std::vector<std::string>& arguments) {
  const std::vector<std::string_view> views(arguments.begin(), arguments.end());
  if (const absl::Status sent = client.Send(views); !sent.ok()) return "lost: " + sent.ToString();
  const absl::StatusOr<Reply> reply = client.Receive();
  return reply.ok() ? ReplyText(*reply) : "lost: " + reply.status().ToString();
}

}  // namespace varve::testing
