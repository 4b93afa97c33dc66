// A disk with the kernel's memory before it, as plain values: what programs see, what has reached
// the disk, and what is on its way.
//
// Nothing reaches the disk but by a sync: a file's content (data and size) by that of the file, a
// directory's names by that of the directory. What a power cut leaves of the rest is drawn from a
// seed, harder than any one file system is known to be:
//
//   names     none of the changes since the sync; all; the first few (a journal in order); any of
//             them; or for each name by itself any state that it has been in
//   content   none of the writes; all; the first few; any of them; any of their sectors, each by
//             itself, where a later write to a sector may be lost and an earlier one kept
//   size      any that the file had since its sync: what is missing before it reads as zeros, or as
//             the bytes of a removed file
//
// A failed sync keeps a random part, and what it lost is lost: the kernel takes the pages for
// clean, and shows them until the end.
//
// A value: copying is cheap (contents are shared until they are written).
//
// Thread-safety: a disk belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace varve::testing {

// One change to a disk. A trace of them, applied to a copy of the disk they began with, gives the
// same disk.
struct DiskEvent {
  enum class Type : uint8_t {
    kMakeDirectory,  // path
    kCreate,         // path; a new inode. An existing file keeps its inode and is cut to nothing
    kRename,         // path -> to
    kLink,           // to names what path does
    kRemove,         // path
    kWrite,          // inode, offset, data
    kTruncate,       // inode, size (in offset)
    kSync,           // inode
    kSyncWrite,      // inode; offset and data of a write before, which alone gets to the disk
    kFailedSync,     // inode, seed (in offset)
    kSyncDirectory,  // path
  };
  Type type;
  uint64_t inode = 0;
  uint64_t offset = 0;
  std::string path;
  std::string to;
  std::shared_ptr<const std::string> data;
};

class SimulatedDisk {
 public:
  static constexpr uint64_t kSectorSize = 512;

  // With a root directory, "", which is on disk.
  SimulatedDisk();

  // --- What programs see.
  // The file's inode; nothing if there is no file of this name.
  std::optional<uint64_t> Find(const std::string& path) const;
  bool IsDirectory(const std::string& path) const;
  // By how many names the file can be reached.
  uint64_t CountLinks(uint64_t inode) const;
  // Names in the directory, sorted.
  std::vector<std::string> List(const std::string& directory) const;
  const std::string& Content(uint64_t inode) const { return *inodes_.at(inode).live; }

  // The one that the next directory or file gets.
  uint64_t next_inode() const { return next_inode_; }

  // The event must make sense: the names that it speaks of exist.
  void Apply(const DiskEvent& event);

  // --- Crashes. What a power cut leaves; all of it is on disk then. kLoseAll and kKeepAll first,
  // then the two ways between names and contents, then any number of others.
  static constexpr uint64_t kLoseAll = 0, kKeepAll = 1, kKeepNames = 2, kKeepContents = 3;
  SimulatedDisk CutPower(uint64_t choice) const;
  // Returns whether a power cut could lose anything.
  bool HasUnsynced() const;
  // Returns a hash of all names and contents: those that programs see, and those on disk.
  uint64_t Hash() const;

  static std::string ParentOf(const std::string& path);

 private:
  using Bytes = std::shared_ptr<std::string>;
  using Random = std::mt19937_64;

  struct Change {
    uint64_t offset = 0;                      // or the new size, where there is no data
    std::shared_ptr<const std::string> data;  // null: a truncation
  };
  struct Inode {
    bool is_directory = false;
    Bytes live;
    Bytes durable;
    std::vector<Change> unsynced;  // oldest first
  };
  struct NameChange {
    std::string directory;
    std::string from;  // taken away; empty: none
    std::string to;    // now names `inode`; empty: none
    uint64_t inode = 0;
  };
  using Names = std::map<std::string, uint64_t>;  // by path

  void Rename(NameChange change);
  static void Perform(const NameChange& change, Names* names);
  static void Perform(const Change& change, std::string* content);
  static Bytes Own(Bytes* bytes);  // for writing
  Names NamesAfterPowerCut(uint64_t choice, Random* random) const;
  Bytes ContentAfterPowerCut(const Inode& inode, uint64_t choice, Random* random) const;
  std::string TornContent(const Inode& inode, Random* random) const;
  void KeepSomeSectors(const Change& change, bool stale, Random* random,
                       std::string* content) const;

  Names live_names_, durable_names_;
  std::vector<NameChange> name_changes_;  // oldest first
  std::map<uint64_t, Inode> inodes_;
  uint64_t next_inode_ = 1;
  Bytes removed_;  // content of the file that was removed last
};

}  // namespace varve::testing
