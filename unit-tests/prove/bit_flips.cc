#include "unit-tests/prove/bit_flips.h"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "client/client.h"
#include "fmt/format.h"
#include "unit-tests/prove/fleet.h"
#include "unit-tests/testing/server_process.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using testing::ServerProcess;

constexpr size_t kWriters = 2;
constexpr size_t kDepth = 4;

struct Flip {
  std::string file;  // its name
  uint64_t offset;
  int bit;

  std::string Words() const { return fmt::format("bit {} of byte {} of {}", bit, offset, file); }
};

class BitFlips {
 public:
  BitFlips(const CycleOptions& options, const std::string& client_main)
      : options_(options),
        client_main_(client_main),
        store_(options.directory + "/store"),
        copy_(options.directory + "/copy"),
        random_(options.seed),
        fleet_(kWriters, options.seed) {}

  absl::StatusOr<FlipFigures> Run() {
    VARVE_RETURN_IF_ERROR(MakeStore());
    const auto begin = steady_clock::now();
    for (uint64_t i = 0; i < options_.cycles && result_.complaints.empty(); ++i) {
      if (options_.at_most.count() > 0 && steady_clock::now() - begin > options_.at_most) break;
      VARVE_RETURN_IF_ERROR(OneFlip(RandomFlip()));
      ++result_.flips;
    }
    return std::move(result_);
  }

 private:
  void Complain(std::string complaint) { result_.complaints.push_back(std::move(complaint)); }

  absl::Status MakeStore() {
    // Killed under load, recovered, killed again: what the recovery found is what must be there.
    for (const bool write : {true, false}) {
      ServerProcess server(options_.server, store_, flags_);
      if (server.port() == 0)
        return absl::InternalError("the server does not start: " + server.log());
      if (write) {
        VARVE_RETURN_IF_ERROR(fleet_.Start(server.port(), kDepth));
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
      } else {
        const Figures found = fleet_.Check(server.port());
        if (!found.complaints.empty()) return absl::InternalError(found.complaints[0]);
      }
      server.process().Kill(SIGKILL);
      server.process().Wait();
      fleet_.Join();
    }
    expected_ = fleet_.Expected();
    for (const fs::directory_entry& entry : fs::directory_iterator(store_)) {
      if (entry.file_size() == 0) continue;
      files_.push_back(entry.path().filename().string());
      result_.bytes += entry.file_size();
    }
    result_.files = files_.size();
    return absl::OkStatus();
  }

  Flip RandomFlip() {
    Flip flip{.file = files_[random_() % files_.size()],
              .offset = 0,
              .bit = static_cast<int>(random_() % 8)};
    flip.offset = random_() % fs::file_size(fs::path(store_) / flip.file);
    return flip;
  }

  // A kill may leave a segment that is not the store's, yet or any more: verify doesn't miss it
  // where it is gone.
  bool IsTheStores(const std::string& file) {
    fs::remove_all(copy_);
    fs::copy(store_, copy_);
    fs::remove(fs::path(copy_) / file);
    return VerifyNames(file);
  }

  absl::Status OneFlip(const Flip& flip) {
    fs::remove_all(copy_);
    fs::copy(store_, copy_);
    {
      std::fstream file(fs::path(copy_) / flip.file,
                        std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(flip.offset));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(flip.offset));
      file.put(static_cast<char>(byte ^ (1 << flip.bit)));
      if (!file.good()) return absl::InternalError("flip " + flip.Words());
    }
    const bool verified = VerifyNames(flip.file);
    result_.verified += verified;
    const uint64_t harmless = result_.harmless;
    VARVE_RETURN_IF_ERROR(Serve(flip));
    if (!verified && (result_.harmless == harmless ||
                      (!flip.file.ends_with(".log") && IsTheStores(flip.file)))) {
      Complain(flip.Words() + ": client_main verify does not find it");
    }
    return absl::OkStatus();
  }

  // Whether the verifier finds damage in the file, be it where nothing leads to.
  bool VerifyNames(const std::string& file) const {
    const std::string output = copy_ + ".verified";
    const int status = testing::Process(client_main_, {"--raw", "verify", copy_}, output).Wait();
    const std::string kind = status == 2 ? "damage" : status == 0 ? "unused" : "nothing";
    return testing::ReadFile(output).find(kind + "\t" + file + "\t") != std::string::npos;
  }

  // Starts a server on the copy, and reads.
  absl::Status Serve(const Flip& flip) {
    ServerProcess server(options_.server, copy_, flags_);
    if (server.port() == 0) {
      const bool may = flip.file == "MANIFEST" || flip.file.ends_with(".log");
      if (!may || server.log().find(flip.file) == std::string::npos) {
        Complain(fmt::format("{}: the server does not start: {}", flip.Words(), server.log()));
      }
      ++result_.refused;
      return absl::OkStatus();
    }
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                           Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60)));
    VARVE_ASSIGN_OR_RETURN(const bool by_keys, ReadByKeys(client.get(), flip));
    const bool by_scan = ReadByScan(client.get(), flip);
    ++(by_keys || by_scan ? result_.reported : result_.harmless);
    return absl::OkStatus();
  }

  // Whether the damage was reported.
  bool IsReport(const std::string& error, const Flip& flip) {
    if (error.find("DATALOSS") != std::string::npos && error.find(flip.file) != std::string::npos)
      return true;
    Complain(flip.Words() + ": an error that doesn't name it: " + error);
    return false;
  }

  absl::StatusOr<bool> ReadByKeys(Client* client, const Flip& flip) {
    const std::vector<std::string> keys = fleet_.AllKeys();
    std::vector<std::string_view> request = {"MGET"};
    request.insert(request.end(), keys.begin(), keys.end());
    VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call(request));
    bool reported = false;
    for (size_t i = 0; i < keys.size(); ++i) {
      const Reply& value = reply.elements[i];
      const auto expected = expected_.find(keys[i]);
      if (value.is_error()) {
        reported = IsReport(value.text, flip) || reported;
      } else if (value.is_null() ? expected != expected_.end()
                                 : expected == expected_.end() || expected->second != value.text) {
        ++result_.unnoticed;
        Complain(fmt::format("{}: {} is wrong and nobody says so", flip.Words(), keys[i]));
      }
    }
    return reported;
  }

  bool ReadByScan(Client* client, const Flip& flip) {
    const absl::StatusOr<Client::Pairs> pairs = client->Range("-", "+");
    if (!pairs.ok()) return IsReport(pairs.status().ToString(), flip);
    if (Pairs(pairs->begin(), pairs->end()) != expected_ || pairs->size() != expected_.size()) {
      ++result_.unnoticed;
      Complain(flip.Words() + ": a scan shows something else and nobody says so");
    }
    return false;
  }

  const CycleOptions options_;
  const std::string client_main_;
  const std::vector<std::string> flags_ = {"--write-buffer-size=64KiB", "--block-cache-size=0"};
  const std::string store_;
  const std::string copy_;
  std::mt19937_64 random_;
  Fleet fleet_;
  Pairs expected_;
  std::vector<std::string> files_;
  FlipFigures result_;
};

}  // namespace

absl::StatusOr<FlipFigures> RunBitFlips(const CycleOptions& options,
                                        const std::string& client_main) {
  return BitFlips(options, client_main).Run();
}

}  // namespace varve::prove
