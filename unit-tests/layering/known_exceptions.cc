// What the tree still keeps although a rule forbids it. Lines are only taken away from here.
#include "unit-tests/layering/source_rules.h"

namespace varve {

const Exceptions& KnownExceptions() {
  static const auto* const exceptions = new Exceptions{
      .arrows =
          {
              {"server/clients", "server/commands"},
              {"server/clients", "server/execution"},
              {"server/config", "server"},
              {"server/config", "server/clients"},
              {"server/config", "server/net"},
              {"server/execution", "server"},
              {"server/execution", "server/commands"},
              {"server/net", "server"},
              {"server/statistics", "server"},
              {"server/statistics", "server/commands"},
              {"server/statistics", "server/execution"},
              {"unit-tests/db/format", "db/engine"},
              {"unit-tests/db/format", "db/namespaces"},
              {"unit-tests/db/format", "db/version"},
              {"unit-tests/db/format", "unit-tests/db/log"},
              {"unit-tests/db/version", "db/iterators"},
              {"unit-tests/server/clients", "server/commands"},
              {"unit-tests/server/clients", "server/execution"},
              {"unit-tests/server/execution", "server/commands"},
          },
      .long_functions =
          {
              "Commands",
              "Engine::CompactionLoop",
              "Engine::ExplainGetInside",
              "Engine::PrepareLocked",
              "Engine::RemoveExpired",
              "Engine::StatisticsInside",
              "Engine::TrySubmit",
              "ParseCommandLine",
              "Report",
              "TEST(TransactionTest, EqualsAModelUnderRandomOperations)",
              "TEST_F(MergeWriterTest, ReadersFindTheSameAndNoMoreIsKeptThanTheyNeed)",
              "TEST_P(NamespacesModelTest, AgreesWithMaps)",
          },
      .large_classes =
          {
              "CommandContext",
              "Engine",
              "IoLoop",
              "LogWriter",
              "ServerState",
              "Session",
              "Workload",
          },
      .tables = {{"ServerOptions", "one member for each setting"}},
      .fragments = 265,
  };
  return *exceptions;
}

}  // namespace varve
