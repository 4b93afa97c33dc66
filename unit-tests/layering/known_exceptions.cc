// What the tree still keeps although a rule forbids it. Lines are only taken away from here.
#include "unit-tests/layering/source_rules.h"

namespace varve {

const Exceptions& KnownExceptions() {
  static const auto* const exceptions = new Exceptions{
      .long_functions =
          {
              "TEST(TransactionTest, EqualsAModelUnderRandomOperations)",
              "TEST_F(MergeWriterTest, ReadersFindTheSameAndNoMoreIsKeptThanTheyNeed)",
              "TEST_P(NamespacesModelTest, AgreesWithMaps)",
          },
      .large_classes =
          {
              "Workload",
          },
      .tables = {{"ServerOptions", "one member for each setting"}},
      .fragments = 0,
  };
  return *exceptions;
}

}  // namespace varve
