#include "client/bundle/bundle.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/bundle/archive.h"
#include "client/bundle/http_get.h"
#include "client/bundle/local_facts.h"
#include "client/bundle/redactor.h"
#include "client/client.h"
#include "client/console/output.h"
#include "client/console/text.h"
#include "fmt/format.h"
#include "type/version.h"

namespace varve {
namespace {

using Words = std::vector<std::string_view>;

// An answer that does not come must not keep the rest: all of a bundle takes less than 5 s.
constexpr std::chrono::milliseconds kPatience{1000};
// Between the two looks at figures that grow.
constexpr std::chrono::milliseconds kBetweenLooks{1000};
constexpr size_t kMostBytes = 16u << 20;
constexpr const char* kLogLines = "10000";

Reply Text(std::string_view text) {
  return {.type = Reply::Type::kBulk, .text = std::string(text)};
}
Reply Number(size_t number) {
  return {.type = Reply::Type::kInteger, .integer = static_cast<int64_t>(number)};
}
Reply Map(std::vector<Reply> pairs) {
  return {.type = Reply::Type::kMap, .elements = std::move(pairs)};
}
Reply List() { return {.type = Reply::Type::kArray}; }

std::string Lines(const Reply& reply) {
  std::string lines;
  for (const Reply& line : reply.elements) lines += line.text + "\n";
  return lines;
}

// The value of a line "name:value" of INFO.
std::string InfoValue(std::string_view info, std::string_view name) {
  const std::string line = fmt::format("\n{}:", name);
  const size_t at = info.find(line);
  if (at == std::string_view::npos) return "";
  const size_t begin = at + line.size();
  return std::string(info.substr(begin, info.find_first_of("\r\n", begin) - begin));
}

std::string SettingOf(const Reply& settings, std::string_view name) {
  for (size_t i = 0; i + 1 < settings.elements.size(); i += 2) {
    if (settings.elements[i].text == name) return settings.elements[i + 1].text;
  }
  return "";
}

// Gathers the files of one bundle.
class Bundle {
 public:
  Bundle(Client& client, const ClientOptions& connection, Redactor redactor)
      : client_(client), connection_(connection), redactor_(std::move(redactor)) {
    redactor_.Hash(connection.password);
  }

  void Gather(const DescribeStore& describe_store) {
    Reply settings = Ask({"CONFIG", "GET", "*"}, "config.json");
    const std::string info = Ask({"INFO", "EVERYTHING"}, "info_1.txt").text;
    const bool has_metrics = AddMetrics(settings, "metrics_1.txt");
    const auto first_look = std::chrono::steady_clock::now();
    AddReply("status.json", Ask({"STATUS"}, "status.json"));
    AddClientsAndSlowLog();
    AddReply("latency.json", Ask({"LATENCY", "HISTOGRAM"}, "latency.json"));
    AddMachine(info, SettingOf(settings, "dir"), describe_store);
    Add("info_1.txt", info);
    std::this_thread::sleep_until(first_look + kBetweenLooks);
    Add("info_2.txt", Ask({"INFO", "EVERYTHING"}, "info_2.txt").text);
    if (has_metrics) AddMetrics(settings, "metrics_2.txt");
    redactor_.RedactSettings(&settings);
    AddReply("config.json", settings);
    // Last, so that what the other files hide can be found in its lines.
    Add("server.log", redactor_.Clean(Lines(Ask({"SERVERLOG", kLogLines}, "server.log"))));
  }

  // The files, MANIFEST.json first.
  std::vector<ArchivedFile> Take() {
    std::vector<ArchivedFile> all = {{"MANIFEST.json", Manifest()}};
    for (ArchivedFile& file : files_) all.push_back(std::move(file));
    return all;
  }
  size_t missing() const { return missing_.elements.size() / 2; }

 private:
  // Returns the reply; where there is none, notes that `file` is missing and returns an empty one.
  Reply Ask(const Words& words, std::string_view file) {
    absl::StatusOr<Reply> reply = client_.Call(words);
    if (reply.ok()) return *std::move(reply);
    Miss(file, reply.status());
    return {};
  }

  void Add(std::string_view name, std::string content) {
    if (content.empty()) return;
    if (bytes_ + content.size() > kMostBytes) {
      return Miss(name, absl::ResourceExhaustedError(fmt::format(
                            "{} bytes; a bundle holds at most {}", content.size(), kMostBytes)));
    }
    bytes_ += content.size();
    files_.push_back({std::string(name), std::move(content)});
  }

  void AddReply(std::string_view name, const Reply& reply) {
    if (!reply.is_null()) Add(name, JsonOf(reply) + "\n");
  }

  void Miss(std::string_view file, const absl::Status& why) {
    missing_.elements.push_back(Text(file));
    missing_.elements.push_back(Text(redactor_.Clean(std::string(why.message()))));
  }

  void AddClientsAndSlowLog() {
    Add("clients.txt", redactor_.RedactClients(Ask({"CLIENT", "LIST"}, "clients.txt").text));
    Reply slow = Ask({"SLOWLOG", "GET", "-1"}, "slowlog.json");
    redactor_.RedactSlowLog(&slow);
    AddReply("slowlog.json", slow);
  }

  // Returns whether there are any.
  bool AddMetrics(const Reply& settings, std::string_view name) {
    const std::string port = SettingOf(settings, "http-port");
    ClientOptions options = connection_;
    options.port = static_cast<uint16_t>(std::strtoul(port.c_str(), nullptr, 10));
    options.unix_socket.clear();
    if (!connection_.unix_socket.empty()) options.host = SettingOf(settings, "http-bind");
    const absl::StatusOr<std::string> page =
        options.port != 0 ? HttpGet(options, "/metrics")
                          : absl::UnavailableError(
                                "the server serves no HTTP (http-port), or its "
                                "settings may not be read");
    if (page.ok()) {
      Add(name, redactor_.RedactMetrics(*page));
    } else {
      Miss(name, page.status());
    }
    return page.ok();
  }

  void AddMachine(std::string_view info, const std::string& directory,
                  const DescribeStore& describe_store) {
    const std::string id = InfoValue(info, "process_id");
    const absl::StatusOr<std::string> data =
        LocalDataDirectory(id, InfoValue(info, "executable"), directory);
    if (!data.ok()) {
      Miss("machine.txt", data.status());
      return Miss("store.txt", data.status());
    }
    Add("machine.txt", MachineFacts(id, *data));
    absl::StatusOr<std::string> store = describe_store(*data);
    if (!store.ok()) return Miss("store.txt", store.status());
    Add("store.txt", *std::move(store));
  }

  std::string Manifest() const {
    Reply files = List();
    for (const ArchivedFile& file : files_) {
      files.elements.push_back(
          Map({Text("name"), Text(file.name), Text("bytes"), Number(file.content.size())}));
    }
    const Reply manifest = Map(
        {Text("made_by"), Text(fmt::format("varve {} bundle", kVarveVersion)),  //
         Text("made_at"),
         Text(absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())),
         Text("server"), Text(AddressOf(connection_)),  //
         Text("redacted"),
         Text("Keys, other arguments, prefixes of keys, and names of clients and users are hashes "
              "under a key that is not kept; passwords are removed; values are not asked for. "
              "Names of namespaces, addresses and paths are as they are."),
         Text("files"), files,  //
         Text("missing"), missing_});
    return JsonOf(manifest) + "\n";
  }

  Client& client_;
  const ClientOptions& connection_;
  Redactor redactor_;
  std::vector<ArchivedFile> files_;
  size_t bytes_ = 0;
  Reply missing_ = Map({});
};

}  // namespace

int RunBundle(const CommandLine& line, const DescribeStore& describe_store) {
  if (line.words.size() != 2) {
    return Fail(
        absl::InvalidArgumentError("bundle takes the name of the archive, such as varve.tar.gz"));
  }
  ClientOptions options = line.connection;
  options.protocol = 3;  // whose maps have names
  options.reconnect_for = std::chrono::milliseconds(0);
  options.connect_timeout = kPatience;
  options.timeout = kPatience;
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<Redactor> redactor = Redactor::Create();
  if (!redactor.ok()) return Fail(redactor.status());
  Bundle bundle(**client, options, *std::move(redactor));
  bundle.Gather(describe_store);
  const size_t missing = bundle.missing();
  const std::vector<ArchivedFile> files = bundle.Take();
  if (const absl::Status written = WriteArchive(line.words[1], files); !written.ok())
    return Fail(written);
  PrintOut(fmt::format(
      "{}: {} files without keys, values, passwords and names{}\n", line.words[1], files.size(),
      missing == 0 ? "" : fmt::format("; {} could not be had, see MANIFEST.json", missing)));
  return kDone;
}

}  // namespace varve
