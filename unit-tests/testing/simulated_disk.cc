#include "unit-tests/testing/simulated_disk.h"

#include <algorithm>
#include <set>
#include <utility>

#include "util/base/hash.h"

namespace varve::testing {
namespace {

bool Coin(std::mt19937_64* random) { return (*random)() % 2 == 0; }

}  // namespace

SimulatedDisk::SimulatedDisk() {
  inodes_[0].is_directory = true;
  live_names_[""] = durable_names_[""] = 0;
}

std::string SimulatedDisk::ParentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::optional<uint64_t> SimulatedDisk::Find(const std::string& path) const {
  const auto found = live_names_.find(path);
  if (found == live_names_.end() || inodes_.at(found->second).is_directory) return std::nullopt;
  return found->second;
}

bool SimulatedDisk::IsDirectory(const std::string& path) const {
  const auto found = live_names_.find(path);
  return found != live_names_.end() && inodes_.at(found->second).is_directory;
}

uint64_t SimulatedDisk::CountLinks(uint64_t inode) const {
  return static_cast<uint64_t>(
      std::count_if(live_names_.begin(), live_names_.end(),
                    [&](const auto& entry) { return entry.second == inode; }));
}

std::vector<std::string> SimulatedDisk::List(const std::string& directory) const {
  std::vector<std::string> names;
  for (auto entry = live_names_.lower_bound(directory + "/");
       entry != live_names_.end() && entry->first.starts_with(directory + "/"); ++entry) {
    if (ParentOf(entry->first) == directory)
      names.push_back(entry->first.substr(directory.size() + 1));
  }
  return names;
}

// --- Changes -------------------------------------------------------------------------------------

SimulatedDisk::Bytes SimulatedDisk::Own(Bytes* bytes) {
  if (bytes->use_count() > 1) *bytes = std::make_shared<std::string>(**bytes);
  return *bytes;
}

void SimulatedDisk::Perform(const NameChange& change, Names* names) {
  if (!change.from.empty()) names->erase(change.from);
  if (!change.to.empty()) (*names)[change.to] = change.inode;
}

void SimulatedDisk::Perform(const Change& change, std::string* content) {
  if (change.data == nullptr) {
    content->resize(change.offset);
    return;
  }
  if (content->size() < change.offset + change.data->size())
    content->resize(change.offset + change.data->size());
  content->replace(change.offset, change.data->size(), *change.data);
}

void SimulatedDisk::Rename(NameChange change) {
  const std::string& gone = change.to.empty() ? change.from : change.to;
  if (const auto old = live_names_.find(gone);
      old != live_names_.end() && old->second != change.inode) {
    removed_ = inodes_.at(old->second).live;
  }
  Perform(change, &live_names_);
  name_changes_.push_back(std::move(change));
}

void SimulatedDisk::Apply(const DiskEvent& event) {
  const auto inode = inodes_.find(event.inode);
  const auto change = [&](Change made) {
    Perform(made, Own(&inode->second.live).get());
    inode->second.unsynced.push_back(std::move(made));
  };
  switch (event.type) {
    case DiskEvent::Type::kMakeDirectory:
    case DiskEvent::Type::kCreate: {
      const uint64_t created = next_inode_++;
      Inode& added = inodes_[created];
      added.is_directory = event.type == DiskEvent::Type::kMakeDirectory;
      added.live = std::make_shared<std::string>();
      added.durable = std::make_shared<std::string>();
      Rename({ParentOf(event.path), "", event.path, created});
      break;
    }
    case DiskEvent::Type::kRename:
      Rename({ParentOf(event.to), event.path, event.to, live_names_.at(event.path)});
      break;
    case DiskEvent::Type::kLink:
      Rename({ParentOf(event.to), "", event.to, live_names_.at(event.path)});
      break;
    case DiskEvent::Type::kRemove:
      Rename({ParentOf(event.path), event.path, "", 0});
      break;
    case DiskEvent::Type::kWrite:
      change({event.offset, event.data});
      break;
    case DiskEvent::Type::kTruncate:
      change({event.offset, nullptr});
      break;
    case DiskEvent::Type::kSync:
      for (const Change& done : inode->second.unsynced)
        Perform(done, Own(&inode->second.durable).get());
      inode->second.unsynced.clear();
      break;
    case DiskEvent::Type::kSyncWrite:
      Perform({event.offset, event.data}, Own(&inode->second.durable).get());
      std::erase_if(inode->second.unsynced,
                    [&](const Change& done) { return done.data == event.data; });
      break;
    case DiskEvent::Type::kFailedSync: {
      Random random(event.offset);
      inode->second.durable = std::make_shared<std::string>(TornContent(inode->second, &random));
      inode->second.unsynced.clear();
      break;
    }
    case DiskEvent::Type::kSyncDirectory:
      std::erase_if(name_changes_, [&](const NameChange& done) {
        if (done.directory != event.path) return false;
        Perform(done, &durable_names_);
        return true;
      });
      break;
  }
}

// --- Crashes -------------------------------------------------------------------------------------

bool SimulatedDisk::HasUnsynced() const {
  if (!name_changes_.empty()) return true;
  for (const auto& [number, inode] : inodes_) {
    if (!inode.unsynced.empty()) return true;
  }
  return false;
}

SimulatedDisk SimulatedDisk::CutPower(uint64_t choice) const {
  Random random(choice);
  SimulatedDisk disk;
  disk.durable_names_ = NamesAfterPowerCut(choice, &random);
  // What lies in a directory that was lost is lost with it. Parents sort before what is in them.
  std::erase_if(disk.durable_names_, [&](const auto& name) {
    return !name.first.empty() && !disk.durable_names_.contains(ParentOf(name.first));
  });
  std::set<uint64_t> named;
  for (const auto& [path, number] : disk.durable_names_) named.insert(number);
  for (const auto& [number, inode] : inodes_) {
    if (!named.contains(number)) continue;
    Inode& left = disk.inodes_[number];
    left.is_directory = inode.is_directory;
    left.durable = left.live =
        inode.unsynced.empty() ? inode.durable : ContentAfterPowerCut(inode, choice, &random);
  }
  disk.live_names_ = disk.durable_names_;
  disk.next_inode_ = next_inode_;
  disk.removed_ = removed_;
  return disk;
}

SimulatedDisk::Names SimulatedDisk::NamesAfterPowerCut(uint64_t choice, Random* random) const {
  Names names = durable_names_;
  if (choice == kLoseAll || choice == kKeepContents) return names;
  if (choice == kKeepAll || choice == kKeepNames) return live_names_;
  enum { kNone, kAll, kFirst, kAny, kEachName, kCount };
  switch ((*random)() % kCount) {
    case kNone:
      return names;
    case kAll:
      return live_names_;
    case kFirst: {
      const size_t kept = (*random)() % (name_changes_.size() + 1);
      for (size_t i = 0; i < kept; ++i) Perform(name_changes_[i], &names);
      return names;
    }
    case kAny:
      for (const NameChange& change : name_changes_) {
        if (Coin(random)) Perform(change, &names);
      }
      return names;
    default: {
      std::map<std::string, std::vector<std::optional<uint64_t>>> states;
      for (const NameChange& change : name_changes_) {
        if (!change.from.empty()) states[change.from].push_back(std::nullopt);
        if (!change.to.empty()) states[change.to].push_back(change.inode);
      }
      for (const auto& [name, later] : states) {
        const size_t state = (*random)() % (later.size() + 1);
        if (state == 0) continue;  // as it was
        if (later[state - 1]) {
          names[name] = *later[state - 1];
        } else {
          names.erase(name);
        }
      }
      // A rename is one change of a journal: a file that had a name on disk keeps it, or has its
      // new one.
      for (const NameChange& change : name_changes_) {
        if (change.from.empty() || change.to.empty()) continue;
        const auto had_name = durable_names_.find(change.from);
        if (had_name == durable_names_.end() || had_name->second != change.inode) continue;
        const bool has_name = std::any_of(names.begin(), names.end(), [&](const auto& name) {
          return name.second == change.inode;
        });
        if (!has_name) names.try_emplace(change.from, change.inode);
      }
      return names;
    }
  }
}

SimulatedDisk::Bytes SimulatedDisk::ContentAfterPowerCut(const Inode& inode, uint64_t choice,
                                                         Random* random) const {
  if (choice == kLoseAll || choice == kKeepNames) return inode.durable;
  if (choice == kKeepAll || choice == kKeepContents) return inode.live;
  enum { kNone, kAll, kFirst, kAny, kSectors, kMoreSectors, kCount };
  switch ((*random)() % kCount) {
    case kNone:
      return inode.durable;
    case kAll:
      return inode.live;
    case kFirst: {
      auto content = std::make_shared<std::string>(*inode.durable);
      const size_t kept = (*random)() % (inode.unsynced.size() + 1);
      for (size_t i = 0; i < kept; ++i) Perform(inode.unsynced[i], content.get());
      return content;
    }
    case kAny: {
      auto content = std::make_shared<std::string>(*inode.durable);
      for (const Change& change : inode.unsynced) {
        if (Coin(random)) Perform(change, content.get());
      }
      return content;
    }
    default:
      return std::make_shared<std::string>(TornContent(inode, random));
  }
}

std::string SimulatedDisk::TornContent(const Inode& inode, Random* random) const {
  const bool stale = Coin(random);
  std::string content = *inode.durable;
  std::vector<size_t> sizes = {content.size()};
  size_t size = content.size();
  for (const Change& change : inode.unsynced) {
    size = change.data == nullptr ? change.offset
                                  : std::max(size, change.offset + change.data->size());
    sizes.push_back(size);
    if (change.data != nullptr) {
      KeepSomeSectors(change, stale, random, &content);
    } else if (Coin(random)) {
      content.resize(std::min<size_t>(content.size(), change.offset));
    }
  }
  content.resize(sizes[(*random)() % sizes.size()]);
  return content;
}

void SimulatedDisk::KeepSomeSectors(const Change& change, bool stale, Random* random,
                                    std::string* content) const {
  const uint64_t end = change.offset + change.data->size();
  for (uint64_t begin = change.offset; begin < end;) {
    const uint64_t next = std::min(end, (begin / kSectorSize + 1) * kSectorSize);
    if (content->size() < next) {
      // A new sector: until its data arrives, it holds what it held for another file, or nothing.
      const size_t old_size = content->size();
      content->resize(next);
      if (stale && removed_ != nullptr && removed_->size() > old_size) {
        content->replace(old_size, std::min<size_t>(next, removed_->size()) - old_size, *removed_,
                         old_size, std::min<size_t>(next, removed_->size()) - old_size);
      }
    }
    if (Coin(random))
      content->replace(begin, next - begin, *change.data, begin - change.offset, next - begin);
    begin = next;
  }
}

uint64_t SimulatedDisk::Hash() const {
  std::string summary;
  const auto add = [&](const Names& names, Bytes Inode::*content) {
    for (const auto& [path, number] : names) {
      const Inode& inode = inodes_.at(number);
      const uint64_t hash = inode.is_directory ? 0 : HashKey(*(inode.*content));
      summary.append(path).push_back('\0');
      summary.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
    }
    summary.push_back('\1');
  };
  add(live_names_, &Inode::live);
  if (HasUnsynced()) add(durable_names_, &Inode::durable);
  return HashKey(summary);
}

}  // namespace varve::testing
