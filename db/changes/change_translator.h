// The change translator turns a batch of the log into what readers of the change feed see: keys
// without the generation, operations with the namespace's id and name. It follows the changes of
// namespaces from batch to batch.
//
// Thread-safety: one thread at a time uses a translator.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "db/changes/change_block.h"
#include "db/namespaces/namespace_table.h"
#include "type/record.h"
#include "type/tree_key.h"
#include "varve/types.h"

namespace varve {

class ChangeTranslator {
 public:
  // Takes the namespaces from the table: the next batch is the first one behind its state.
  void Start(const NamespaceTable& namespaces);
  // Notes that the next batch goes into another block, whose dictionary is empty.
  void BeginBlock() { indexes_.clear(); }

  // Translates the operations of a batch that begins with the version `first`, and puts those that
  // readers and followers see into `*operations`. Adds the namespaces that occur to the dictionary
  // of `block`. Returns whether readers see one of them. Throws std::bad_alloc; then the same batch
  // can be translated again.
  bool Translate(std::string_view batch, SequenceNumber first, uint32_t count, ChangeBlock* block,
                 std::string* operations);
  // Follows the namespaces through a batch that change files hold already.
  void Follow(std::string_view batch);

 private:
  struct Space {
    NamespaceGeneration generation = kNoGeneration;
    std::string name;
  };
  struct Spaces {
    std::unordered_map<NamespaceId, Space> by_id;
    std::unordered_map<NamespaceGeneration, NamespaceId> by_generation;

    void Set(NamespaceId id, NamespaceGeneration generation);
    std::string NameOf(NamespaceId id) const;
    // Makes the change that the operation of the log makes.
    void Apply(const RecordView& record);
  };

  // Appends the record, and adds the namespace to the dictionary if it is not there.
  void Append(const Spaces& spaces, NamespaceId id, ChangeRecord record, SequenceNumber last,
              ChangeBlock* block, std::string* operations);
  // Translates a change of a namespace, which `spaces` do not know yet. `encoded` is the operation
  // in the log.
  void AppendChange(const RecordView& record, std::string_view encoded, Spaces* spaces,
                    SequenceNumber last, ChangeBlock* block, std::string* operations);

  Spaces spaces_;
  // The places of namespaces, under their present names, in the block's dictionary.
  std::unordered_map<NamespaceId, uint32_t> indexes_;
};

}  // namespace varve
