// The conformance test for adapters: does this executable keep the protocol (backends/PROTOCOL.md)?
//
// The adapter is started as the harness starts it, and gets the requests that every adapter gets: its
// capabilities, things that it cannot do, every op that it claims in every dtype that it claims (on data
// whose exact result every format holds), and messages that no harness sends. Ops and dtypes that it does not
// claim are skipped by name. Each check reports what was found and what was expected.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/conform/adapter_programs.h"
#include "harness/conform/adapter_session.h"

namespace ulpscope {

struct CheckLine {
  enum class Mark { kOk, kFail, kSkip } mark = Mark::kOk;
  std::string check;          ///< "run.exact float32"
  std::string found;          ///< what was seen, or why it is skipped
  std::string expected = {};  ///< of failing lines
};

/// A program of the checks, and what it must give.
struct Prepared {
  Case test_case;
  ExactAnswer exact;
};

/// Everything about one backend of one adapter.
std::vector<CheckLine> CheckAdapter(const AdapterSubject& subject, const Registry& registry,
                                    const Scratch& scratch);

/// State that the checks share: their lines and one warm session, replaced when it dies.
class CheckContext {
 public:
  CheckContext(const AdapterSubject& subject, const Registry& registry, const Scratch& scratch)
      : subject_(subject), registry_(registry), scratch_(scratch) {}

  void Ok(std::string check, std::string found);
  void Fail(std::string check, std::string found, std::string expected);
  void Skip(std::string check, std::string why);
  /// Ok if `problem` is empty, else Fail.
  void Expect(std::string check, std::string problem, std::string expected, std::string found_when_well);

  const AdapterSubject& subject() const { return subject_; }
  const BackendInfo& info() const { return info_; }
  void set_info(BackendInfo info) { info_ = std::move(info); }

  /// A session of its own, not yet started.
  std::unique_ptr<AdapterSession> Fresh() const;
  /// The warm session. One that died is replaced, three times.
  AdapterSession& Warm();
  /// Too many sessions died: what is left would only wait.
  bool GaveUp() const { return deaths_ > kMostDeaths; }
  std::vector<CheckLine> TakeLines() { return std::move(lines_); }

 private:
  static constexpr int kMostDeaths = 3;

  const AdapterSubject& subject_;
  const Registry& registry_;
  const Scratch& scratch_;
  BackendInfo info_;
  std::unique_ptr<AdapterSession> warm_;
  int deaths_ = -1;  // the first start is no death
  std::vector<CheckLine> lines_;
};

/// The groups, in the order they run: adapter_check.cc, adapter_check_runs.cc, adapter_check_wire.cc.
void CheckPrograms(CheckContext& context);
void CheckForms(CheckContext& context);
void CheckRefusedRuns(CheckContext& context);
void CheckTrace(CheckContext& context);
void CheckKnobs(CheckContext& context);
void CheckWire(CheckContext& context);

/// The floating dtypes that it claims and is tested in, widest first; the first one stands for all where one
/// is enough.
std::vector<DType> ClaimedDTypes(const CheckContext& context);

}  // namespace ulpscope
