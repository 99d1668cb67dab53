// report_format.patch: a format that commands offer and that writes what its golden file has.
#include <gtest/gtest.h>

#include "harness/base/find.h"
#include "reports/formats.h"
#include "tests/golden_file.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

TEST(PlainReport, IsOfferedAndWritten) {
  const auto formats = ReportFormats();
  const ReportFormat* format = FindIf(formats, [](const ReportFormat& each) { return each.name == "plain"; });
  ASSERT_NE(format, nullptr);
  testing::ExpectGolden("plain.txt", format->write(testing::SampleReport(), {}));
}

}  // namespace
}  // namespace ulpscope
