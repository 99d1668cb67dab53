// Progress of a run on stderr: a bar where it is a terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ulpscope {

class Progress {
 public:
  enum class Style { kSilent, kBar, kLines };

  Progress(std::string what, Style style) : what_(std::move(what)), style_(style) {}
  ~Progress();

  /// `minutes`: the limit of all of it; 0: there is none. Plain lines begin with one.
  void Start(int64_t total, double minutes = 0);
  /// Something begins; shown beside the bar.
  void Now(const std::string& text);
  /// One more is done. Plain lines come at most every few seconds, and at the end.
  void Step(const std::string& text);
  void End();

 private:
  void Draw();
  void Clear();
  /// ", about 12 s left": the rest's time at the present rate, at most the limit; "" if not known.
  std::string Left() const;

  std::string what_;
  Style style_;
  std::string now_;
  int64_t total_ = 0, done_ = 0;
  double minutes_ = 0;
  std::chrono::steady_clock::time_point begin_{};
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace ulpscope
