// Commands: whatever arguments come, each is answered by well-formed replies, and the store behind
// them stays in order. The requests go the way that a session's do, from the parser through the
// executor into a store; only sockets and threads are left out.
//
//   input = [ flags: 1; bit 0: replies in RESP3 ][ requests, as a client sends them ]
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/clients/client_login.h"
#include "server/clients/client_modes.h"
#include "server/clients/pending_replies.h"
#include "server/commands/command_table.h"
#include "server/execution/batch_executor.h"
#include "server/execution/server_state.h"
#include "server/requests/request_batch.h"
#include "server/user_commands/command_rights.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/resp/resp_parser.h"
#include "util/resp/resp_reply.h"
#include "varve/storage_engine.h"
#include "varve/write_batch.h"

namespace varve::fuzz {
namespace {

constexpr size_t kLongest = 2048;  // bytes of requests
constexpr size_t kMostRequests = 32;
constexpr size_t kMostSlices = 100'000;

std::unique_ptr<StorageEngine> OpenStore(const std::string& directory) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 4u << 20;
  options.block_cache_size = 1u << 20;
  options.offset_table_cache_size = 1u << 20;
  options.history.bytes = 1u << 20;
  auto store = StorageEngine::Open(directory, options);
  VARVE_FUZZ_REQUIRE(store.ok());
  return *std::move(store);
}

// A server without sockets; one for all inputs, emptied after each.
struct Server {
  testing::TempDir directory;
  std::unique_ptr<StorageEngine> store = OpenStore(directory.path());
  ServerState state{store.get(), ServerConfig(), ServerProgram(), &AccessCatalog()};

  void Empty() {
    WriteBatch batch;
    batch.ClearNamespace();
    const NamespaceList list = store->Namespaces().value();
    for (const NamespaceDescription& space : list.namespaces) {
      if (space.id != kDefaultNamespace) batch.DropNamespace(space.id);
    }
    VARVE_FUZZ_REQUIRE(store->Write({}, &batch).ok());
  }
};

class Connection {
 public:
  Connection(Server* server, int protocol) : server_(server) {
    client_.id = 1;
    client_.protocol = protocol;
    BecomeDefaultUser(&client_, server->state.clients.users);
    client_.link.mailbox.Open(&server->state.live.message_limits, [] {});
    server_->state.clients.registry.Add(client_.id, &client_);
  }
  ~Connection() {
    server_->state.clients.registry.Remove(client_.id);
    LeaveModes(&server_->state.clients, &client_);
  }

  void Execute(const RequestBatch& batch) {
    PendingReplies replies;
    executor_.Begin(&batch);
    executor_.BeginReplies(&replies);
    size_t slices = 0;
    while (executor_.Run(BatchExecutor::Where::kWorker) == BatchExecutor::Progress::kMore) {
      VARVE_FUZZ_REQUIRE(++slices < kMostSlices);
    }
    if (!executor_.broken()) RequireWellFormed(replies.bytes().view());
  }

 private:
  static void RequireWellFormed(std::string_view replies) {
    while (!replies.empty()) {
      Reply reply;
      size_t consumed = 0;
      VARVE_FUZZ_REQUIRE(ParseReply(replies, &reply, &consumed) == ReplyResult::kReply);
      replies.remove_prefix(consumed);
    }
  }

  Server* const server_;
  ClientState client_;
  BatchExecutor executor_{&server_->state, &client_};
};

// What waits, ends the server, or changes what later inputs meet; and offsets so far out that
// values would take long to fill.
bool IsLeftOut(const Command& command, Arguments arguments) {
  constexpr std::array<std::string_view, 5> kLeftOut = {"wait", "shutdown", "save", "bgsave",
                                                        "config"};
  constexpr std::array<std::string_view, 3> kFarOut = {"setrange", "setbit", "bitfield"};
  constexpr int kFarDigits = 6;
  if ((command.flags & kMaintenanceCommand) != 0) return true;
  if (std::find(kLeftOut.begin(), kLeftOut.end(), command.name) != kLeftOut.end()) return true;
  if (std::find(kFarOut.begin(), kFarOut.end(), command.name) == kFarOut.end()) return false;
  return std::any_of(arguments.begin(), arguments.end(), [](std::string_view argument) {
    int digits = 0;
    for (const char c : argument) {
      digits = c >= '0' && c <= '9' ? digits + 1 : 0;
      if (digits == kFarDigits) return true;
    }
    return false;
  });
}

void Run(std::string_view bytes) {
  static Server server;
  Input input(bytes);
  const int protocol = (input.Byte() & 1) != 0 ? 3 : 2;
  ExactCopy requests(input.Rest().substr(0, kLongest));
  {
    Connection connection(&server, protocol);
    RespParser parser;
    RequestBatch batch;
    for (size_t at = 0, consumed = 0; batch.requests.size() < kMostRequests; at += consumed) {
      const size_t first = batch.arguments.size();
      if (parser.Next(requests.data() + at, requests.size() - at, &batch.arguments, &consumed) !=
          RespParser::Result::kRequest) {
        break;
      }
      const size_t count = batch.arguments.size() - first;
      if (count == 0) continue;
      const Command* const command = FindCommand(batch.arguments[first]);
      if (command != nullptr && IsLeftOut(*command, Arguments(batch.arguments).subspan(first))) {
        batch.arguments.resize(first);
        continue;
      }
      batch.requests.push_back(
          {command, static_cast<uint32_t>(first), static_cast<uint32_t>(count)});
    }
    connection.Execute(batch);
  }
  server.Empty();
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {
      "SET k v\nGET k\nSET k w GET EX 10 NX\nMSET a 1 b 2\nMGET a b c\nSETNX a 1\nGETEX a\n",
      "SET n 10\nINCRBY n 5\nINCRBYFLOAT n 1.5e2\nDECR n\nINCRBYFLOAT n inf\n",
      "SETRANGE s 5 abc\nGETRANGE s -3 -1\nAPPEND s xyz\nSTRLEN s\nSUBSTR s 0 2\n",
      "SETBIT b 7 1\nBITCOUNT b 0 -1 BIT\nBITPOS b 1 0 -1 BYTE\nBITOP NOT c b\nBITFIELD b OVERFLOW "
      "SAT INCRBY i5 #1 "
      "300 GET u64 0 SET i64 3 "
      "-1\nBITFIELD_RO b GET u8 0\n",
      "MSET a1 x a2 y b1 z\nKEYS a*\nSCAN 0 MATCH [ab]1 COUNT 1 TYPE string\nRANGE [a (b LIMIT 2 "
      "REVERSE\nPREFIX "
      "a\nCOUNT - +\nRANDOMKEY\n",
      "SET a ohmytext\nSET b mynewtext\nLCS a b IDX MINMATCHLEN 4 WITHMATCHLEN\nLCS a b LEN\n",
      "RENAME a b\nCOPY a b REPLACE\nEXISTS a a b\nTYPE a\nTOUCH a\nUNLINK a b\nDELRANGE a "
      "z\nDBSIZE\n",
      "MSET p/a/1 x p/a x p//y x\nCHILDREN p/ REV WITHSIZES\nTREE p/ DEPTH 2 WITHSIZES\nTREE p "
      "DELIM "
      "/a LIMIT 2\nWATCHPREFIX p/\nWATCHRANGE [q (r\nMULTI\nTREE p/ WITHSIZES\nDELPREFIX p/a\nTREE "
      "p/\nEXEC\nUNWATCH\n",
      "HELLO 3 SETNAME me\nCLIENT LIST\nCLIENT INFO\nCLIENT REPLY SKIP\nPING\nCLIENT NO-EVICT "
      "ON\nECHO hi\nRESET\n",
      "SUBSCRIBE c d\nPUBLISH c m\nPSUBSCRIBE c*\nPUBSUB NUMSUB c\nPUBSUB CHANNELS "
      "*\nUNSUBSCRIBE\nPUNSUBSCRIBE\nMONITOR\n",
      "COMMAND DOCS get set\nCOMMAND INFO get nosuch\nCOMMAND GETKEYS MSET a 1 b 2\nCOMMAND LIST "
      "FILTERBY PATTERN "
      "x*\nCOMMAND COUNT\n",
      "INFO everything\nSLOWLOG GET 1\nLATENCY HISTOGRAM get\nEXPLAIN GET k\nMEMORY USAGE "
      "k\nOBJECT ENCODING k\nDEBUG "
      "x\n",
      "SET a 1\nNAMESPACE CREATE n\nNAMESPACE CLONE 0 b AT AGO 0\nSET a 2\nDIFF 0 b\nDIFF 0 AT AGO "
      "0 b "
      "RANGE [a + LIMIT 1\nNAMESPACE DROP b\nNAMESPACE UNDROP b\nNAMESPACE CLONE b c AT 5\nAT 5 "
      "GET a\n",
      "FLUSHALL ASYNC\nFLUSHDB\nSELECT 0\nAUTH x y\nTIME\nLOLWUT\nROLE\nQUIT\n",
  };
  // Every command without arguments, and with some.
  for (const char* arguments : {"\n", " a\n", " a 1\n", " HELP\n"}) {
    std::string all;
    for (const Command& command : AllCommands()) {
      all.append(command.name).append(arguments);
      if (all.size() > kLongest / 4) seeds.push_back(std::exchange(all, ""));
    }
    seeds.push_back(all);
  }
  for (std::string& seed : seeds) seed.insert(seed.begin(), seed.size() % 2 == 0 ? '\0' : '\1');
  return seeds;
}

const Announced kTarget({"command", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
