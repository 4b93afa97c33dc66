#include "client/bundle/bundle.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
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

// An answer that does not come must not keep the rest.
constexpr std::chrono::milliseconds kPatience{1000};
// What is not there by then, because answers come in drops or a disk hangs, stays out. With the
// archive's own time, all of a bundle takes less than 5 s.
constexpr absl::Duration kMostTime = absl::Seconds(4);
// Between the two looks at figures that grow.
constexpr std::chrono::milliseconds kBetweenLooks{1000};
constexpr size_t kMostBytes = 16u << 20;
constexpr const char* kLogLines = "10000";
// Of a server that does not tell its own, because it hangs.
constexpr const char* kDefaultHttpPort = "7778";

// All that a bundle can hold beside MANIFEST.json.
constexpr std::string_view kFiles[] = {
    "config.json", "info_1.txt",    "metrics_1.txt", "history.json", "status.json",
    "clients.txt", "slowlog.json",  "latency.json",  "machine.txt",  "store.txt",
    "info_2.txt",  "metrics_2.txt", "server.log"};

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

// The files of a bundle and the reasons why others are missing. One thread gathers them, another
// one takes what is there when the time is over.
//
// Thread-safety: All threads may call the functions.
class Gathered {
 public:
  void Add(std::string_view name, std::string content) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (content.empty()) return;
    absl::MutexLock lock(&mutex_);
    if (bytes_ + content.size() > kMostBytes) {
      missing_.emplace_back(
          name, fmt::format("{} bytes; a bundle holds at most {}", content.size(), kMostBytes));
      return;
    }
    bytes_ += content.size();
    files_.push_back({std::string(name), std::move(content)});
  }
  void Miss(std::string_view name, std::string why) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    missing_.emplace_back(name, std::move(why));
  }
  // Nothing more is to come. An error: there is no bundle.
  void Finish(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    finished_ = true;
    status_ = std::move(status);
  }

  // Waits for Finish() until the time is over and takes all files. Where the time was over first,
  // every file that is not there is missing.
  struct Taken {
    bool finished = false;
    absl::Status status;
    std::vector<ArchivedFile> files;
    std::vector<std::pair<std::string, std::string>> missing;
  };
  Taken Take(absl::Duration time) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&finished_), time);
    Taken taken{finished_, status_, std::exchange(files_, {}), std::exchange(missing_, {})};
    if (finished_) return taken;
    for (const std::string_view name : kFiles) {
      const bool is_told =
          std::any_of(taken.files.begin(), taken.files.end(),
                      [name](const ArchivedFile& file) { return file.name == name; }) ||
          std::any_of(taken.missing.begin(), taken.missing.end(),
                      [name](const auto& each) { return each.first == name; });
      if (!is_told) taken.missing.emplace_back(name, "the time that a bundle may take was over");
    }
    return taken;
  }

 private:
  absl::Mutex mutex_;
  std::vector<ArchivedFile> files_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, std::string>> missing_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// The gathering of one bundle.
//
// Thread-safety: One thread uses an object.
class Bundle {
 public:
  // `http_port`: where the server serves HTTP; empty: as its settings say.
  Bundle(ClientOptions connection, std::string http_port, Redactor redactor,
         std::shared_ptr<Gathered> gathered)
      : connection_(std::move(connection)),
        http_port_(std::move(http_port)),
        redactor_(std::move(redactor)),
        gathered_(std::move(gathered)) {
    redactor_.Hash(connection_.password);
  }

  void Gather(const DescribeStore& describe_store) {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(connection_);
    if (client.ok()) {
      client_ = *std::move(client);
    } else if (absl::IsDeadlineExceeded(client.status())) {
      // HTTP has a thread of its own, which may still answer.
      silence_ = client.status();
      if (http_port_.empty()) http_port_ = kDefaultHttpPort;
    } else {
      return gathered_->Finish(client.status());
    }
    GatherFiles(describe_store);
    gathered_->Finish(absl::OkStatus());
  }

 private:
  void GatherFiles(const DescribeStore& describe_store) {
    Reply settings = Ask({"CONFIG", "GET", "*"}, "config.json");
    redactor_.RedactSettings(&settings);
    AddReply("config.json", settings);
    if (http_port_.empty()) http_port_ = SettingOf(settings, "http-port");
    const std::string info = Ask({"INFO", "EVERYTHING"}, "info_1.txt").text;
    gathered_->Add("info_1.txt", info);
    const bool has_metrics = AddMetrics(settings, "metrics_1.txt");
    const auto first_look = std::chrono::steady_clock::now();
    if (has_metrics) {
      AddPage(settings, "/status.json?series=0", "history.json");
    } else {
      Miss("history.json", absl::UnavailableError("there is no HTTP, see metrics_1.txt"));
    }
    AddReply("status.json", Ask({"STATUS"}, "status.json"));
    AddClientsAndSlowLog();
    AddReply("latency.json", Ask({"LATENCY", "HISTOGRAM"}, "latency.json"));
    AddMachine(info, SettingOf(settings, "dir"), describe_store);
    if (client_ == nullptr && !has_metrics) return;  // there is nobody to look at
    std::this_thread::sleep_until(first_look + kBetweenLooks);
    gathered_->Add("info_2.txt", Ask({"INFO", "EVERYTHING"}, "info_2.txt").text);
    if (has_metrics) AddMetrics(settings, "metrics_2.txt");
    // Last, so that what the other files hide can be found in its lines.
    gathered_->Add("server.log",
                   redactor_.Clean(Lines(Ask({"SERVERLOG", kLogLines}, "server.log"))));
  }

  // Returns the reply; where there is none, notes that `file` is missing and returns an empty one.
  Reply Ask(const Words& words, std::string_view file) {
    if (client_ == nullptr) {
      Miss(file, silence_);
      return {};
    }
    absl::StatusOr<Reply> reply = client_->Call(words);
    if (reply.ok()) return *std::move(reply);
    Miss(file, reply.status());
    return {};
  }

  void AddReply(std::string_view name, const Reply& reply) {
    if (!reply.is_null()) gathered_->Add(name, JsonOf(reply) + "\n");
  }

  void Miss(std::string_view file, const absl::Status& why) {
    gathered_->Miss(file, redactor_.Clean(std::string(why.message())));
  }

  void AddClientsAndSlowLog() {
    gathered_->Add("clients.txt",
                   redactor_.RedactClients(Ask({"CLIENT", "LIST"}, "clients.txt").text));
    Reply slow = Ask({"SLOWLOG", "GET", "-1"}, "slowlog.json");
    redactor_.RedactSlowLog(Ask({"COMMAND", "LIST"}, "names of commands in slowlog.json"), &slow);
    AddReply("slowlog.json", slow);
  }

  absl::StatusOr<std::string> Page(const Reply& settings, std::string_view path) {
    ClientOptions options = connection_;
    options.port = static_cast<uint16_t>(std::strtoul(http_port_.c_str(), nullptr, 10));
    options.unix_socket.clear();
    if (const std::string host = SettingOf(settings, "http-bind");
        !connection_.unix_socket.empty() && !host.empty()) {
      options.host = host;
      // The server itself has told its address on this machine, so its certificate need not.
      options.tls.enabled = options.tls.insecure = SettingOf(settings, "tls") == "required";
    }
    if (options.port == 0) {
      return absl::UnavailableError(
          "the server serves no HTTP (http-port), or its settings may not be read");
    }
    return HttpGet(options, path);
  }

  // Returns whether there are any.
  bool AddMetrics(const Reply& settings, std::string_view name) {
    const absl::StatusOr<std::string> page = Page(settings, "/metrics");
    if (page.ok()) {
      gathered_->Add(name, redactor_.RedactMetrics(*page));
    } else {
      Miss(name, page.status());
    }
    return page.ok();
  }

  void AddPage(const Reply& settings, std::string_view path, std::string_view name) {
    const absl::StatusOr<std::string> page = Page(settings, path);
    if (!page.ok()) return Miss(name, page.status());
    gathered_->Add(name, *page);
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
    gathered_->Add("machine.txt", MachineFacts(id, *data));
    absl::StatusOr<std::string> store = describe_store(*data);
    if (!store.ok()) return Miss("store.txt", store.status());
    gathered_->Add("store.txt", *std::move(store));
  }

  const ClientOptions connection_;
  std::string http_port_;
  Redactor redactor_;
  const std::shared_ptr<Gathered> gathered_;
  std::unique_ptr<Client> client_;  // none: the server does not answer
  absl::Status silence_;            // then: why
};

std::string Manifest(const ClientOptions& connection, const Gathered::Taken& taken) {
  Reply files = List();
  for (const ArchivedFile& file : taken.files) {
    files.elements.push_back(
        Map({Text("name"), Text(file.name), Text("bytes"), Number(file.content.size())}));
  }
  Reply missing = Map({});
  for (const auto& [name, why] : taken.missing)
    missing.elements.insert(missing.elements.end(), {Text(name), Text(why)});
  const Reply manifest = Map(
      {Text("made_by"), Text(fmt::format("varve {} bundle", kVarveVersion)),  //
       Text("made_at"), Text(absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())),
       Text("server"), Text(AddressOf(connection)),  //
       Text("redacted"),
       Text("Keys, other arguments, prefixes of keys, and names of clients and users are hashes "
            "under a key that is not kept; passwords are removed; values are not asked for. "
            "Names of namespaces, addresses and paths are as they are."),
       Text("files"), files,  //
       Text("missing"), missing});
  return JsonOf(manifest) + "\n";
}

// Writes the archive. Returns the exit code.
int WriteBundle(const std::string& path, const ClientOptions& connection, Gathered::Taken taken) {
  if (!taken.status.ok()) return Fail(taken.status);
  if (taken.files.empty()) {
    return Fail(absl::DeadlineExceededError(
        taken.missing.empty() ? "the server did not answer in time" : taken.missing[0].second));
  }
  std::string manifest = Manifest(connection, taken);
  taken.files.insert(taken.files.begin(), {"MANIFEST.json", std::move(manifest)});
  if (const absl::Status written = WriteArchive(path, taken.files); !written.ok())
    return Fail(written);
  PrintOut(fmt::format(
      "{}: {} files without keys, values, passwords and names{}\n", path, taken.files.size(),
      taken.missing.empty()
          ? ""
          : fmt::format("; {} could not be had, see MANIFEST.json", taken.missing.size())));
  return kDone;
}

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
  absl::StatusOr<Redactor> redactor = Redactor::Create();
  if (!redactor.ok()) return Fail(redactor.status());
  const auto gathered = std::make_shared<Gathered>();
  const auto bundle =
      std::make_shared<Bundle>(options, line.http_port == 0 ? "" : fmt::to_string(line.http_port),
                               *std::move(redactor), gathered);
  std::thread gathering([bundle, describe_store] { bundle->Gather(describe_store); });
  Gathered::Taken taken = gathered->Take(kMostTime);
  const bool finished = taken.finished;
  const int code = WriteBundle(line.words[1], options, std::move(taken));
  if (!finished) {
    // The thread may wait for a disk that hangs: nobody waits for it, and what it uses stays.
    std::fflush(nullptr);
    std::_Exit(code);
  }
  gathering.join();
  return code;
}

}  // namespace varve
