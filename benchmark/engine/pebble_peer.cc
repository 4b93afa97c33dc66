// Pebble: a Go program beside this one (benchmark/pebble), which does the work of rows by itself
// and says what it took; its process is measured as this one is for the other engines. The calls
// of peer.h are messages to it, and serve the check of the adapter only. Where the program was not
// built, Pebble is not measured.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "benchmark/engine/engine_rows.h"
#include "benchmark/engine/peer.h"
#include "benchmark/latencies.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"

namespace varve::bench {
namespace {

std::string ProgramOfPebble() { return ProgramDirectory() + "/pebble_peer"; }

std::string Hex(std::string_view bytes) {
  std::string hex = " x";
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t at = 1; at + 1 < hex.size(); at += 2) {
    unsigned byte = 0;
    std::from_chars(hex.data() + at, hex.data() + at + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

// The running program, which answers one request after the other.
class PebbleProcess {
 public:
  PebbleProcess() {
    int requests[2];
    int answers[2];
    if (pipe2(requests, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
      Fail("cannot make a pipe to Pebble");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, requests[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO);
    std::string program = ProgramOfPebble();
    char* const arguments[] = {program.data(), nullptr};
    if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ) != 0)
      Fail("cannot start " + program);
    posix_spawn_file_actions_destroy(&actions);
    close(requests[0]);
    close(answers[1]);
    to_ = fdopen(requests[1], "w");
    from_ = fdopen(answers[0], "r");
  }
  // Ends the program, which closes its store first.
  ~PebbleProcess() {
    fclose(to_);
    int status = 0;
    waitpid(pid_, &status, 0);
    fclose(from_);
    std::free(line_);
  }
  PebbleProcess(const PebbleProcess&) = delete;
  PebbleProcess& operator=(const PebbleProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Returns the lines of the answer.
  std::vector<std::string> Ask(const std::string& request) {
    std::fputs((request + "\n").c_str(), to_);
    std::fflush(to_);
    std::vector<std::string> lines;
    while (true) {
      const ssize_t size = getline(&line_, &room_, from_);
      if (size <= 0) Ended();
      std::string line(line_, static_cast<size_t>(size - 1));
      if (line == "end") return lines;
      if (line.starts_with("error ")) Fail("Pebble: " + line.substr(6));
      lines.push_back(std::move(line));
    }
  }

 private:
  // The program ended instead of answering.
  [[noreturn]] void Ended() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) EndAsKilled();
    Fail(fmt::format("pebble_peer ended (status {})", status));
  }

  pid_t pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  char* line_ = nullptr;
  size_t room_ = 0;
};

class PebbleReader : public Reader {
 public:
  explicit PebbleReader(PebbleProcess* pebble) : pebble_(pebble) {}

  bool Get(std::string_view key, std::string* value) override {
    const std::vector<std::string> answer = pebble_->Ask("get" + Hex(key));
    if (answer.empty()) return false;
    *value = FromHex(answer[0].substr(answer[0].find(' ') + 1));
    return true;
  }
  bool Seek(std::string_view key) override { return Take(pebble_->Ask("seek" + Hex(key))); }
  bool Next() override { return Take(pebble_->Ask("next")); }

 private:
  bool Take(const std::vector<std::string>& answer) {
    if (answer.empty()) return false;
    std::istringstream words(answer[0]);
    std::string kind;
    std::string key;
    std::string value;
    words >> kind >> key >> value;
    at_ = {FromHex(key), FromHex(value)};
    key_ = at_.first;
    value_ = at_.second;
    return true;
  }

  PebbleProcess* const pebble_;
  std::pair<std::string, std::string> at_;
};

// The work's name in the program; null: it has another one's.
const char* KindOf(Work work) {
  switch (work) {
    case Work::kFillInOrder:
      return "fill_in_order";
    case Work::kFillInBatches:
      return "fill_in_batches";
    case Work::kPut:
    case Work::kPutSynced:
    case Work::kPutAsync:
      return "put";
    case Work::kReadInOrder:
      return "read_in_order";
    case Work::kReadAtRandom:
    case Work::kGetCold:
      return "read_at_random";
    case Work::kMultiGet:
    case Work::kMultiGetCold:
      return "multiget";
    case Work::kReadMissing:
      return "read_missing";
    case Work::kSeek:
      return "seek";
    case Work::kReadWhileWriting:
      return "read_while_writing";
    case Work::kDelete:
      return "delete";
    case Work::kOverwrite:
      return "overwrite";
    case Work::kYcsb:
      return "ycsb";
    default:
      return "fill_at_random";
  }
}

class PebblePeer : public Peer {
 public:
  explicit PebblePeer(const PeerOptions& options) {
    pebble_.Ask(fmt::format(
        "open dir={} cache={} write_buffer={} write_buffers={} total={} synced={:d} defaults={:d}",
        options.dir, options.memory.block_cache, options.memory.write_buffer, kWriteBuffers,
        options.memory.total, options.synced, options.defaults));
  }

  void Put(std::string_view key, std::string_view value) override {
    pebble_.Ask("put" + Hex(key) + Hex(value));
  }
  void Delete(std::string_view key) override { pebble_.Ask("delete" + Hex(key)); }
  void WriteBatch(std::span<const KeyValue> batch) override {
    std::string request = "batch";
    for (const auto& [key, value] : batch) request += Hex(key) + Hex(value);
    pebble_.Ask(request);
  }
  std::unique_ptr<Reader> NewReader() override { return std::make_unique<PebbleReader>(&pebble_); }
  void Flush() override { pebble_.Ask("flush"); }
  void Compact() override { pebble_.Ask("compact"); }

  pid_t process() const override { return pebble_.pid(); }

  bool DoByItself(const Row& row, Timing* timing) override {
    const double cpu = ProcessUse::Now(pebble_.pid()).cpu_seconds;
    std::string request = fmt::format(
        "work kind={} value_size={} threads={} entries={} operations={} group={} every={} seed={} "
        "seek_steps={}",
        KindOf(row.work), row.value_size, row.threads, row.entries, row.operations, row.group,
        row.latency_every(), row.seed, kSeekSteps);
    if (row.work == Work::kYcsb) {
      request += fmt::format(" workload={} zipfian={:d} first_insert={}", row.workload, row.zipfian,
                             row.first_insert);
    }
    for (const std::string& line : pebble_.Ask(request)) {
      std::istringstream words(line);
      std::string name;
      double value = 0;
      uint64_t times = 0;
      words >> name >> value;
      if (name == "seconds") timing->seconds = value;
      if (name == "writes") timing->writes = value;
      if (name == "latency" && words >> times)
        timing->latencies.Record(static_cast<uint64_t>(value), times);
    }
    timing->cpu_seconds = ProcessUse::Now(pebble_.pid()).cpu_seconds - cpu;
    return true;
  }

 private:
  PebbleProcess pebble_;
};

}  // namespace

std::unique_ptr<Peer> OpenPebble(const PeerOptions& options) {
  return std::make_unique<PebblePeer>(options);
}

std::string PebbleMissing() {
  if (std::filesystem::exists(ProgramOfPebble())) return "";
  return "the build target pebble_peer was not built (it takes Go 1.23)";
}

}  // namespace varve::bench
