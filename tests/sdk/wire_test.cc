// The wire: framing over sockets and pipes, limits, time-outs, and messages that must be refused.
#include "backends/sdk/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace ulpscope::sdk {
namespace {

using testing::HasSubstr;

struct Pair {
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0); }
  ~Pair() {
    Close(0);
    Close(1);
  }
  void Close(size_t end) {
    if (fds[end] >= 0) close(fds[end]);
    fds[end] = -1;
  }
  void Send(const std::string& text) const { ASSERT_TRUE(WriteLine(fds[0], text)); }
  std::array<int, 2> fds{-1, -1};
};

TEST(LineReader, KeepsWhatFollowsALine) {
  const Pair pair;
  LineReader reader(pair.fds[1]);
  pair.Send("one\ntwo\nthr");
  EXPECT_EQ(reader.Read(1000)->line, "one");
  EXPECT_EQ(reader.Read(1000)->line, "two");
  EXPECT_EQ(reader.Read(20)->state, ReadState::kTimedOut);
  pair.Send("ee\n");
  EXPECT_EQ(reader.Read(1000)->line, "three");
}

TEST(LineReader, ADripDoesNotProlongTheDeadline) {
  const Pair pair;
  LineReader reader(pair.fds[1]);
  std::jthread drip([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      (void)WriteLine(pair.fds[0], "x");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  // A deadline that each byte prolonged would not end before the longest line, in hours.
  EXPECT_EQ(reader.Read(100)->state, ReadState::kTimedOut);
}

TEST(LineReader, TellsAnEndBetweenLinesFromOneInside) {
  Pair between;
  LineReader first(between.fds[1]);
  between.Send("a\n");
  between.Close(0);
  EXPECT_EQ(first.Read(1000)->state, ReadState::kLine);
  EXPECT_EQ(first.Read(1000)->state, ReadState::kClosed);
  Pair inside;
  LineReader second(inside.fds[1]);
  inside.Send("half");
  inside.Close(0);
  const auto read = second.Read(1000);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("ended inside a message, after 4 bytes"));
}

TEST(LineReader, RefusesALineOverTheLimitWithoutReadingItAll) {
  const WireLimits limits{.max_bytes = 1000, .max_depth = 64};
  const Pair exact;
  LineReader exact_reader(exact.fds[1], limits);
  exact.Send(std::string(1000, 'x') + "\n");
  EXPECT_EQ(exact_reader.Read(1000)->line.size(), 1000U);
  for (const std::string& text : {std::string(1001, 'x') + "\n", std::string(5000, 'x')}) {
    const Pair pair;
    LineReader reader(pair.fds[1], limits);
    pair.Send(text);
    const auto read = reader.Read(1000);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("limit"));
  }
}

TEST(LineReader, CarriesAMessageOfTheFullSizeOverASocket) {
  const Pair pair;
  Json message = {{"text", std::string((size_t{16} << 20) - 100, 'y')}};
  std::jthread writer([&] { EXPECT_TRUE(WriteMessage(pair.fds[0], message, 20000)); });
  LineReader reader(pair.fds[1]);
  const auto read = reader.Read(20000);
  ASSERT_TRUE(read);
  EXPECT_EQ(*ParseMessage(read->line), message);
}

TEST(WriteLine, ReportsAClosedEndAndAFullOne) {
  Pair closed;
  closed.Close(1);
  EXPECT_FALSE(WriteLine(closed.fds[0], "a\n"));  // SIGPIPE would end this process
  const Pair full;
  const auto written = WriteLine(full.fds[0], std::string(size_t{8} << 20, 'z'), 50);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("time out"));
}

TEST(WriteLine, WorksOnPipes) {
  std::array<int, 2> fds{};
  ASSERT_EQ(pipe(fds.data()), 0);
  EXPECT_TRUE(WriteLine(fds[1], "pipe\n"));
  EXPECT_EQ(LineReader(fds[0]).Read(1000)->line, "pipe");
  close(fds[0]);
  close(fds[1]);
}

TEST(ParseMessage, RefusesEachMalformedMessageForItsOwnReason) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "no JSON"},
      {"{", "no JSON"},
      {"{}x", "no JSON"},
      {"{'a': 1}", "no JSON"},
      {"{\"a\": nan}", "no JSON"},
      {"{\"a\": 01}", "no JSON"},
      {"{\"a\": \"\xc3\x28\"}", "no JSON"},
      {"{\"a\": \"\xed\xa0\x80\"}", "no JSON"},
      {"[1]", "no JSON object but array"},
      {"3", "no JSON object but number"},
      {"null", "no JSON object but null"},
      {R"({"a": 1, "a": 2})", "'a' twice"},
      {R"({"b": {"c": [{"d": 1, "d": 1}]}})", "'d' twice"},
      {std::string(65, '{'), "nested 65 deep"},
      {"{\"a\": " + std::string(64, '[') + std::string(64, ']') + "}", "nested 65 deep"},
  };
  for (const auto& [text, error] : bad) {
    const auto message = ParseMessage(text);
    ASSERT_FALSE(message) << text;
    EXPECT_THAT(message.error().message, HasSubstr(error)) << text;
  }
  EXPECT_FALSE(ParseMessage(R"({"a": 1})", {.max_bytes = 4, .max_depth = 64}));
  // A million brackets must neither overflow the stack nor take long.
  EXPECT_FALSE(ParseMessage(std::string(1000000, '[')));
}

TEST(ParseMessage, TakesWhatIsAllowed) {
  EXPECT_TRUE(ParseMessage(R"({"a": "{[\"{[", "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}]})"));
  EXPECT_TRUE(ParseMessage("{\"a\": " + std::string(63, '[') + std::string(63, ']') + "}"));
}

TEST(FormatMessage, ReplacesBytesThatAreNoUtf8) {
  const auto line = FormatMessage({{"text", "a\xff z\n"}});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->find('\n'), line->size() - 1);
  EXPECT_EQ((*ParseMessage(line->substr(0, line->size() - 1)))["text"], "a\xef\xbf\xbd z\n");
  EXPECT_FALSE(FormatMessage({{"text", "12345"}}, {.max_bytes = 8, .max_depth = 64}));
}

TEST(FloatToJson, HasWordsForWhatJsonLacks) {
  EXPECT_EQ(FloatToJson(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(FloatToJson(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(FloatToJson(std::nan("")), "nan");
  EXPECT_EQ(FloatToJson(0.1), 0.1);
}

}  // namespace
}  // namespace ulpscope::sdk
