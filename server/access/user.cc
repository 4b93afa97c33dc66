#include "server/access/user.h"

#include <algorithm>
#include <string_view>

namespace varve {
namespace {

void AppendWord(std::string* text, std::string_view word) {
  if (word.empty()) return;
  if (!text->empty()) text->push_back(' ');
  text->append(word);
}

std::string PatternText(const KeyPattern& pattern) {
  if (pattern.rights == kMayBoth) return "~" + pattern.pattern;
  return (pattern.rights == kMayRead ? "%R~" : "%W~") + pattern.pattern;
}

void AppendPlaces(const PlaceRights& places, std::string_view all, std::string_view reset,
                  std::string_view word, std::string* text) {
  if (places.all) return AppendWord(text, all);
  AppendWord(text, reset);
  for (const std::string& name : places.names) AppendWord(text, std::string(word) + name);
}

}  // namespace

bool AllowsAll(const Selector& selector) {
  return selector.all_commands && selector.all_keys && selector.all_channels &&
         selector.all_places();
}

std::string DescribeCommands(const Selector& selector) {
  std::string text = selector.later_commands ? "+@all" : "-@all";
  for (const CommandRule& rule : selector.rules)
    AppendWord(&text, (rule.allows ? "+" : "-") + rule.name);
  return text;
}

std::string DescribeKeys(const Selector& selector) {
  if (selector.all_keys) return "~*";
  std::string text;
  for (const KeyPattern& pattern : selector.keys) AppendWord(&text, PatternText(pattern));
  return text;
}

std::string DescribeChannels(const Selector& selector) {
  if (selector.all_channels) return "&*";
  std::string text;
  for (const std::string& channel : selector.channels) AppendWord(&text, "&" + channel);
  return text;
}

std::string DescribePlaces(const Selector& selector) {
  std::string text;
  if (selector.all_places()) return text;
  AppendPlaces(selector.databases, "alldbs", "resetdbs", "db=", &text);
  AppendPlaces(selector.namespaces, "allns", "resetns", "ns=", &text);
  return text;
}

std::string DescribeSelector(const Selector& selector) {
  std::string text = DescribeKeys(selector);
  if (!selector.all_channels) AppendWord(&text, "resetchannels");
  AppendWord(&text, DescribeChannels(selector));
  AppendWord(&text, DescribePlaces(selector));
  AppendWord(&text, DescribeCommands(selector));
  return text;
}

std::vector<std::string> FlagsOf(const User& user) {
  std::vector<std::string> flags = {user.on ? "on" : "off"};
  if (user.nopass) flags.push_back("nopass");
  if (user.payload == User::Payload::kSkip) flags.push_back("skip-sanitize-payload");
  if (user.payload == User::Payload::kSanitize) flags.push_back("sanitize-payload");
  return flags;
}

std::string DescribeUser(const User& user) {
  std::string line = "user " + user.name;
  for (const std::string& flag : FlagsOf(user)) AppendWord(&line, flag);
  for (const std::string& password : user.passwords) AppendWord(&line, "#" + password);
  AppendWord(&line, DescribeLimits(user.limits));
  AppendWord(&line, DescribeSelector(user.root));
  for (const Selector& selector : user.selectors)
    AppendWord(&line, "(" + DescribeSelector(selector) + ")");
  return line;
}

}  // namespace varve
