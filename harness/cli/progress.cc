// Drawing progress.
#include "harness/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "reports/text_safe.h"

namespace ulpscope {
namespace {

using std::chrono::steady_clock;
constexpr auto kBarInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(5);
constexpr size_t kBarWidth = 24;

size_t Columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

Progress::~Progress() { Clear(); }

void Progress::Start(int64_t total, double minutes) {
  total_ = total;
  minutes_ = minutes;
  begin_ = last_ = steady_clock::now();
  if (style_ == Style::kBar) Draw();
  if (style_ == Style::kLines && total > 0) Write(fmt::format("{} 0/{}{}\n", what_, total, Left()));
}

std::string Progress::Left() const {
  const double elapsed = std::chrono::duration<double>(steady_clock::now() - begin_).count();
  const double limit = minutes_ > 0 ? std::max(0.0, 60 * minutes_ - elapsed) : 0;
  if (done_ == total_) return "";
  if (done_ == 0) return minutes_ > 0 ? fmt::format(", at most {:.0f} s", limit) : "";
  const double rest = elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
  if (minutes_ > 0 && rest > limit) return fmt::format(", {:.0f} s left of the limit", limit);
  return fmt::format(", about {:.0f} s left", std::ceil(rest));
}

void Progress::Now(const std::string& text) {
  now_ = text;
  if (style_ == Style::kBar && steady_clock::now() - last_ >= kBarInterval) Draw();
}

void Progress::Step(const std::string& text) {
  ++done_;
  now_ = text;
  const auto elapsed = steady_clock::now() - last_;
  if (style_ == Style::kBar && (elapsed >= kBarInterval || done_ == total_)) Draw();
  if (style_ == Style::kLines && (elapsed >= kLineInterval || done_ == total_)) {
    last_ = steady_clock::now();
    Write(fmt::format("{} {}/{}{}  {}\n", what_, done_, total_, Left(), TerminalSafe(text)));
  }
}

void Progress::End() { Clear(); }

void Progress::Draw() {
  last_ = steady_clock::now();
  const size_t filled =
      total_ == 0 ? 0 : static_cast<size_t>(done_ * static_cast<int64_t>(kBarWidth) / total_);
  const std::string bar = std::string(std::min(filled, kBarWidth), '=') +
                          std::string(kBarWidth - std::min(filled, kBarWidth), ' ');
  std::string line = fmt::format("{} [{}] {}/{}{}  ", what_, bar, done_, total_, Left());
  const size_t room = Columns() - 1;
  for (const char c : TerminalSafe(now_)) {
    if (line.size() >= room) break;
    line += static_cast<unsigned char>(c) < 0x80 ? c : '?';
  }
  line.resize(std::min(line.size(), room));
  Write("\r\x1b[K" + line);
  drawn_ = true;
}

void Progress::Clear() {
  if (drawn_) Write("\r\x1b[K");
  drawn_ = false;
}

}  // namespace ulpscope
