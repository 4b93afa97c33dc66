#include "benchmark/engine/engine_work.h"

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <semaphore>
#include <thread>

#include "benchmark/engine/timed_threads.h"
#include "benchmark/engine/ycsb.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

// Checks what an iterator hands out, and reads all of it.
void CheckAndTouch(std::string_view value, uint64_t number, size_t size) {
  CheckEntry(value, number, size);
  ::benchmark::DoNotOptimize(Value::Touch(value));
}

// From the first entry to the end; returns how many there were.
uint64_t ReadAll(const Row& row, Reader* reader) {
  uint64_t count = 0;
  for (bool more = reader->Seek(""); more; more = reader->Next()) {
    CheckAndTouch(reader->value(), count, row.value_size);
    ++count;
  }
  if (count != row.entries)
    Fail(fmt::format("{} of {} entries were read in order", count, row.entries));
  return count;
}

Timing Fill(const Row& row, int threads, Peer* peer) {
  const bool in_order = row.work == Work::kFillInOrder;
  const std::vector<uint32_t> order = in_order ? std::vector<uint32_t>() : Shuffled(row.entries);
  return TimeThreads(threads, row.entries, 1,
                     [&](int, uint64_t begin, uint64_t end, Latencies* latencies) {
                       Key key;
                       Value value(row.value_size);
                       for (uint64_t i = begin; i < end; ++i) {
                         const uint64_t number = in_order ? i : order[i];
                         latencies->Time([&] { peer->Put(key.Present(number), value.Of(number)); });
                       }
                     });
}

Timing FillInBatches(const Row& row, Peer* peer) {
  const std::vector<uint32_t> order = Shuffled(row.entries);
  return TimeThreads(1, row.entries, 1,
                     [&](int, uint64_t begin, uint64_t end, Latencies* latencies) {
                       std::vector<Key> keys(row.group);
                       std::vector<Value> values(row.group, Value(row.value_size));
                       std::vector<KeyValue> batch;
                       for (uint64_t i = begin; i < end; ++i) {
                         batch.emplace_back(keys[batch.size()].Present(order[i]),
                                            values[batch.size()].Of(order[i]));
                         if (batch.size() < row.group && i + 1 < end) continue;
                         latencies->Time([&] { peer->WriteBatch(batch); });
                         batch.clear();
                       }
                     });
}

// A latency here runs from the submission to the call of `done`.
Timing PutAsync(const Row& row, Peer* peer) {
  const std::vector<uint32_t> order = Shuffled(row.entries);
  std::vector<Clock::time_point> starts(row.entries);
  std::vector<Clock::duration> taken(row.entries);  // each written by the thread that calls `done`
  std::counting_semaphore<> window(row.threads);
  Timing timing =
      TimeThreads(1, row.entries, 1, [&](int, uint64_t begin, uint64_t end, Latencies*) {
        Key key;
        Value value(row.value_size);
        for (uint64_t i = begin; i < end; ++i) {
          window.acquire();
          starts[i] = Clock::now();
          peer->PutAsync(key.Present(order[i]), value.Of(order[i]), [&, i] {
            taken[i] = Clock::now() - starts[i];
            window.release();
          });
        }
        for (int i = 0; i < row.threads; ++i) window.acquire();
      });
  Latencies latencies(1);
  for (const Clock::duration one : taken) latencies.Record(one);
  timing.latencies = latencies.histogram();
  return timing;
}

using ReadPart = std::function<void(Reader*, Random*, uint64_t, uint64_t, Latencies*)>;

// Two calls with different seeds read different keys.
Timing ReadBy(int threads, uint64_t operations, uint64_t latency_every, uint64_t seed, Peer* peer,
              const ReadPart& part) {
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < threads; ++i) readers.push_back(peer->NewReader());
  return TimeThreads(threads, operations, latency_every,
                     [&](int thread, uint64_t begin, uint64_t end, Latencies* latencies) {
                       Random random(seed + static_cast<uint64_t>(thread));
                       part(readers[static_cast<size_t>(thread)].get(), &random, begin, end,
                            latencies);
                     });
}

void MultiGets(const Row& row, Reader* reader, Random* random, uint64_t begin, uint64_t end,
               Latencies* latencies) {
  std::vector<Key> keys(row.group);
  std::vector<uint64_t> numbers(row.group);
  std::vector<std::string_view> wanted(row.group);
  std::vector<const std::string*> values(row.group);
  for (uint64_t i = begin; i < end; i += row.group) {
    const size_t count = std::min<uint64_t>(row.group, end - i);
    for (size_t k = 0; k < count; ++k) {
      numbers[k] = random->Below(row.entries);
      wanted[k] = keys[k].Present(numbers[k]);
    }
    latencies->Time([&] { reader->MultiGet({wanted.data(), count}, {values.data(), count}); });
    for (size_t k = 0; k < count; ++k) {
      if (values[k] == nullptr)
        Fail(fmt::format("entry {} was not found among others", numbers[k]));
      CheckEntry(*values[k], numbers[k], row.value_size);
    }
  }
}

Timing Read(const Row& row, Peer* peer) {
  return ReadBy(
      row.threads, row.operations, row.latency_every(), row.seed, peer,
      [&](Reader* reader, Random* random, uint64_t begin, uint64_t end, Latencies* latencies) {
        if (row.work == Work::kReadInOrder) {
          for (uint64_t read = begin; read < end;) read += ReadAll(row, reader);
          return;
        }
        if (row.work == Work::kMultiGet || row.work == Work::kMultiGetCold) {
          return MultiGets(row, reader, random, begin, end, latencies);
        }
        Key key;
        std::string value;
        for (uint64_t i = begin; i < end; ++i) {
          const uint64_t number = random->Below(row.entries);
          latencies->Time([&] {
            if (row.work == Work::kSeek) {
              SeekAndStep(row, number, kSeekSteps, &key, reader);
            } else if (reader->Get(key.Missing(number), &value)) {
              Fail("a missing key was found");
            }
          });
        }
      });
}

Timing ReadWhileWriting(const Row& row, Peer* peer) {
  std::atomic<bool> ended = false;
  uint64_t writes = 0;
  std::thread writer([&] {
    Random random(row.entries);
    Key key;
    Value value(row.value_size);
    for (; !ended.load(std::memory_order_relaxed); ++writes) {
      const uint64_t number = random.Below(row.entries);
      peer->Put(key.Present(number), value.Of(number));
    }
  });
  Timing timing = ReadAtRandom(row, row.threads, row.operations, 1, peer);
  ended = true;
  writer.join();
  timing.writes = static_cast<double>(writes);
  return timing;
}

Timing Delete(const Row& row, Peer* peer) {
  const std::vector<uint32_t> order = Shuffled(row.entries, 1);
  const Timing timing =
      TimeThreads(1, row.entries, 1, [&](int, uint64_t begin, uint64_t end, Latencies* latencies) {
        Key key;
        for (uint64_t i = begin; i < end; ++i) {
          latencies->Time([&] { peer->Delete(key.Present(order[i])); });
        }
      });
  if (peer->NewReader()->Seek("")) Fail("something is left after all was deleted");
  return timing;
}

}  // namespace

void CheckEntry(std::string_view value, uint64_t number, size_t size) {
  if (value.size() != size || Value::Number(value) != number) {
    Fail(fmt::format("entry {} was read as entry {} with {} bytes", number, Value::Number(value),
                     value.size()));
  }
}

void GetEntry(const Row& row, uint64_t number, Key* key, Reader* reader, std::string* value) {
  if (!reader->Get(key->Present(number), value))
    Fail(fmt::format("entry {} was not found", number));
  CheckEntry(*value, number, row.value_size);
}

void SeekAndStep(const Row& row, uint64_t number, uint64_t steps, Key* key, Reader* reader) {
  const std::string_view first = key->Present(number);
  if (!reader->Seek(first) || reader->key() != first)
    Fail(fmt::format("a seek did not find entry {}", number));
  CheckAndTouch(reader->value(), number, row.value_size);
  for (uint64_t step = 0; step < steps && reader->Next(); ++step) {
    uint64_t next = number + 1;
    // Inserts of YCSB leave gaps between the numbers.
    if (row.work == Work::kYcsb) next = std::max(next, Value::Number(reader->value()));
    number = next;
    CheckAndTouch(reader->value(), number, row.value_size);
  }
}

Timing DoWork(const Row& row, Peer* peer) {
  Timing by_itself;
  if (peer->DoByItself(row, &by_itself)) return by_itself;
  switch (row.work) {
    case Work::kFillInBatches:
      return FillInBatches(row, peer);
    case Work::kPut:
    case Work::kPutSynced:
      return Fill(row, row.threads, peer);
    case Work::kYcsb:
      return RunYcsb(row, peer);
    case Work::kOverwrite:
      return Overwrite(row, row.operations, peer);
    case Work::kPutAsync:
      return peer->CanPutAsync() ? PutAsync(row, peer) : Fill(row, row.threads, peer);
    case Work::kReadAtRandom:
    case Work::kGetCold:
      return ReadAtRandom(row, row.threads, row.operations, row.seed, peer);
    case Work::kReadInOrder:
    case Work::kMultiGet:
    case Work::kReadMissing:
    case Work::kSeek:
    case Work::kMultiGetCold:
      return Read(row, peer);
    case Work::kReadWhileWriting:
      return ReadWhileWriting(row, peer);
    case Work::kDelete:
      return Delete(row, peer);
    default:
      return Fill(row, 1, peer);
  }
}

Timing Overwrite(const Row& row, uint64_t count, Peer* peer) {
  Row overwrite = row;
  overwrite.work = Work::kOverwrite;
  overwrite.operations = count;
  Timing by_itself;
  if (peer->DoByItself(overwrite, &by_itself)) return by_itself;
  return TimeThreads(1, count, 1, [&](int, uint64_t begin, uint64_t end, Latencies* latencies) {
    Random random(row.entries);
    Key key;
    Value value(row.value_size);
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t number = random.Below(row.entries);
      latencies->Time([&] { peer->Put(key.Present(number), value.Of(number)); });
    }
  });
}

Timing ReadAtRandom(const Row& row, int threads, uint64_t count, uint64_t seed, Peer* peer) {
  Row read = row;
  read.work = Work::kReadAtRandom;
  read.threads = threads;
  read.operations = count;
  read.seed = seed;
  Timing by_itself;
  if (peer->DoByItself(read, &by_itself)) return by_itself;
  return ReadBy(
      threads, count, row.latency_every(), seed, peer,
      [&](Reader* reader, Random* random, uint64_t begin, uint64_t end, Latencies* latencies) {
        Key key;
        std::string value;
        for (uint64_t i = begin; i < end; ++i) {
          const uint64_t number = random->Below(row.entries);
          latencies->Time([&] { GetEntry(row, number, &key, reader, &value); });
        }
      });
}

void ReadThrough(const Row& row, Peer* peer) {
  Row read = row;
  read.work = Work::kReadInOrder;
  read.threads = 1;
  read.operations = row.entries;
  DoWork(read, peer);
}

Timing BareWrite(const Row& row, const std::string& directory) {
  const std::string path = directory + "/bare_write";
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) Fail("cannot make " + path);
  std::string bytes;
  for (uint64_t i = 0; i < row.group; ++i) {
    bytes += Key().Present(i);
    bytes += Value(row.value_size).Of(i);
  }
  const Timing timing = TimeThreads(1, row.operations / row.group, 1,
                                    [&](int, uint64_t begin, uint64_t end, Latencies* latencies) {
                                      for (uint64_t i = begin; i < end; ++i) {
                                        latencies->Time([&] {
                                          if (write(descriptor, bytes.data(), bytes.size()) !=
                                              static_cast<ssize_t>(bytes.size())) {
                                            Fail("cannot write " + path);
                                          }
                                        });
                                      }
                                    });
  close(descriptor);
  unlink(path.c_str());
  return timing;
}

}  // namespace varve::bench
