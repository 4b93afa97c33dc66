#include "db/hbase_rpc/hbase_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace varve {
namespace {

using Kind = HbaseFailure::Kind;

// How an exception is answered. The exceptions of kMoved and kBusy are thrown before anything is
// done.
struct ExceptionMeaning {
  std::string_view name;
  Kind kind;
  absl::StatusCode code;
  std::string_view advice;
};

constexpr auto kMeanings = std::to_array<ExceptionMeaning>({
    {"NotServingRegionException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"RegionMovedException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"RegionOpeningException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"WrongRegionException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    // A region that closes during a scan, so as to move or split.
    {"ScannerResetException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"UnknownScannerException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"OutOfOrderScannerNextException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"RegionOfflineException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"RegionServerStoppedException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"RegionServerAbortedException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"MasterNotRunningException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"MasterStoppedException", Kind::kMoved, absl::StatusCode::kUnavailable, ""},
    {"NotAllMetaRegionsOnlineException", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"ServerNotRunningYetException", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"PleaseHoldException", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"RegionTooBusyException", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"CallQueueTooBigException", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"CallDroppedException", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"CallCancelledException", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"RetryImmediatelyException", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"MultiActionResultTooLarge", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"RpcThrottlingException", Kind::kBusy, absl::StatusCode::kUnavailable, ""},
    {"AccessDeniedException", Kind::kFinal, absl::StatusCode::kPermissionDenied,
     "; Varve speaks to clusters that need no authentication (`simple`), and its user needs the "
     "rights to read, write and create"},
    {"BadAuthException", Kind::kFinal, absl::StatusCode::kPermissionDenied,
     "; Varve speaks to clusters that need no authentication (`simple`), not Kerberos"},
    {"TableNotFoundException", Kind::kFinal, absl::StatusCode::kNotFound, ""},
    {"TableExistsException", Kind::kFinal, absl::StatusCode::kAlreadyExists, ""},
    {"TableNotEnabledException", Kind::kFinal, absl::StatusCode::kFailedPrecondition,
     "; enable the table"},
    {"NamespaceNotFoundException", Kind::kFinal, absl::StatusCode::kNotFound,
     "; create the namespace in HBase"},
    {"NoSuchColumnFamilyException", Kind::kFinal, absl::StatusCode::kFailedPrecondition,
     "; the table is not one of Varve"},
    {"UnknownProtocolException", Kind::kFinal, absl::StatusCode::kFailedPrecondition,
     "; the table needs the coprocessor MultiRowMutationEndpoint"},
    {"RequestTooBigException", Kind::kFinal, absl::StatusCode::kInvalidArgument,
     "; write less at a time, or raise hbase.ipc.max.request.size"},
});

constexpr size_t kMaxMessage = 400;

std::string_view SimpleName(std::string_view class_name) {
  const size_t dot = class_name.find_last_of(".$");
  return dot == std::string_view::npos ? class_name : class_name.substr(dot + 1);
}

// The message of an exception: what stands before its stack, without bytes that no terminal shows.
std::string MessageOf(std::string_view trace) {
  std::string text(trace.substr(0, std::min(trace.find('\n'), kMaxMessage)));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

// Java's prefix of a message, such as `org.apache.hadoop.hbase.TableNotFoundException: `.
std::string_view WithoutClass(std::string_view message, std::string_view class_name) {
  if (message.starts_with(class_name)) message.remove_prefix(class_name.size());
  while (message.starts_with(':') || message.starts_with(' ')) message.remove_prefix(1);
  return message;
}

}  // namespace

HbaseFailure FailureOfException(std::string_view class_name, std::string_view trace,
                                bool do_not_retry, std::string_view server) {
  const std::string_view name = SimpleName(class_name);
  const std::string message = MessageOf(trace);
  const std::string text = fmt::format("HBase's server {} refused a request: {}: {}", server,
                                       MessageOf(name), WithoutClass(message, class_name));
  const auto* const found =
      std::find_if(kMeanings.begin(), kMeanings.end(),
                   [&](const ExceptionMeaning& meaning) { return meaning.name == name; });
  if (found != kMeanings.end()) {
    return {found->kind, false,
            absl::Status(found->code, fmt::format("{}{}", text, found->advice))};
  }
  // MultiRowMutationEndpoint refuses rows of two regions so; the client finds out by itself whether
  // they really lie in two.
  if (message.find("Requested row out of range") != std::string::npos) {
    return {Kind::kMoved, false, absl::UnavailableError(text)};
  }
  if (do_not_retry) return {Kind::kFinal, true, absl::InternalError(text)};
  return {Kind::kBusy, true, absl::UnavailableError(text)};
}

HbaseFailure FailureOfGarbage(std::string_view what, std::string_view server) {
  return {
      Kind::kLost, true,
      absl::UnavailableError(fmt::format(
          "the server {} does not answer as HBase does: {}; is it one of HBase?", server, what))};
}

HbaseFailure FailureOfConnection(std::string_view what, std::string_view server, bool was_sent) {
  return {Kind::kLost, was_sent,
          absl::UnavailableError(fmt::format("HBase's server {}: {}", server, what))};
}

}  // namespace varve
