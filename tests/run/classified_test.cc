// Classifications beside the journal: what is written is what is read; what belongs to other results is not
// taken.
#include "harness/record/classified.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/record/crc.h"
#include "harness/record/file_bytes.h"
#include "tests/support/models.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

/// With every field set, and with what JSON finds difficult.
Classified Full() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  PrecisionModel model = testing::Model("blockfma(8,24,rz)", "bfloat16");
  model.in = testing::Ins({{"x", "bfloat16_rne"}});
  model.cuts = testing::Cuts({{"product", "bfloat16"}});
  Classified classified;
  classified.values["product"] = {
      .kind = ClassificationKind::kIndistinguishable,
      .models = {model, testing::Model("float32", "none")},
      .models_proved = {model},
      .fits = true,
      .floors = {{"acc", 17}, {"in.x", 9}},
      .says = {{RemarkKind::kBits, "at most 16 significant bits"}},
      .regions = {{.where = "columns 3 to 7", .label = "rounded through bfloat16"}},
      .excluded = {{.model = model,
                    .element = {3, 0, 7},
                    .observed = -0.0,
                    .reference = 0x1.fffffffffffffp-1022,
                    .low = -kInfinity,
                    .high = kInfinity,
                    .why = "outside \"it\" \xc3\xa9",
                    .further_input = "swamp",
                    .by = ExcludedBy::kBounds}},
      .rests_on_likelihood = true,
      .elements = 12,
      .checked = 11,
      .max_ulp = 0.1,
      .max_abs = 5e-324,
      .beyond = 2.5,
      .beyond_of = "rms",
      .models_tried = 40,
      .label = "a label",
      .labelled = FormatOfWhat::kSteps,
      .states_error = true,
      .notes = {{RemarkKind::kUndecided, "a note"}, {RemarkKind::kOrder, ""}},
      .facets = {.prod = {testing::Prod("exact")},
                 .acc = testing::Accs({"float32", "split_k(float32,float64)"}),
                 .mid = testing::Mids({"bfloat16", "none"}),
                 .out = {testing::Out("float32_rz")}},
      .facets_in = testing::InSets({{"x", {"bfloat16_rne", "as_is"}}}),
      .cuts = testing::CutSets({{"product", {"none"}}}),
      .as_exact = {.acc = testing::Accs({"float32"}),
                   .acc_once = testing::Accs({"bfloat16"}),
                   .prod = {},
                   .any_prod = true},
      .reproduced = 0.75,
      .piece = "step g",
      .reads = {{"g", {"stored", "unrounded"}}},
  };
  classified.values["count"].kind = ClassificationKind::kNotFloating;
  classified.looked_at["result"] = {5, 4097, 70000};
  return classified;
}

class ClassifiedTest : public ::testing::Test {
 protected:
  ClassifiedTest() {
    run_.dir = folder_.path();
    run_.header.id = "id";
    run_.header.digests = {{"a", "1"}, {"b", "2"}};
    for (const char* id : {"a", "b"}) {
      run_.results.emplace_back();
      run_.results.back().case_id = id;
      run_.results.back().backend = "emulated";
      run_.results.back().digest = run_.header.digests.at(id);
    }
  }

  ClassifiedRun Read() const {
    auto classified = ReadClassified(run_);
    EXPECT_TRUE(classified) << classified.error().Text();
    return classified ? std::move(*classified) : ClassifiedRun();
  }
  /// Its text as the file holds it: two of them are the same where every field is.
  std::string TextOf(const Classified& classified) const {
    ClassifiedRun one;
    one.results[{"a", "emulated"}] = classified;
    RecordedRun run = run_;
    run.dir = run.dir / "text";
    std::filesystem::create_directories(run.dir);
    EXPECT_TRUE(WriteClassified(run, one));
    return testing::ReadAll((run.dir / "classified.jsonl").string());
  }

  const testing::TestFolder folder_;
  RecordedRun run_;
};

TEST_F(ClassifiedTest, RoundTrip) {
  EXPECT_TRUE(Read().results.empty()) << "no file, no classification";
  {
    const auto writer = ClassifiedWriter::Open(run_.dir, "id");
    ASSERT_TRUE(writer) << writer.error().Text();
    ASSERT_TRUE(writer->Store("a", "1", "emulated", Full()));
    ASSERT_TRUE(writer->Oracle("fast", {.fast = 3, .compared = 2, .boost = 1}));
  }
  const ClassifiedRun read = Read();
  ASSERT_EQ(read.results.size(), 1u);
  const Classified& first = read.results.begin()->second;
  EXPECT_EQ(TextOf(first), TextOf(Full()));
  const Classification &product = first.values.at("product"), full = Full().values.at("product");
  EXPECT_EQ(product.models, full.models);
  EXPECT_EQ(product.says, full.says);
  EXPECT_EQ(product.notes, full.notes);
  EXPECT_EQ(product.facets, full.facets);
  EXPECT_EQ(product.facets_in, full.facets_in);
  EXPECT_EQ(product.cuts, full.cuts);
  EXPECT_EQ(product.as_exact, full.as_exact);
  EXPECT_EQ(product.excluded.front().by, full.excluded.front().by);
  EXPECT_EQ(product.states_error, full.states_error);
  EXPECT_EQ(first.looked_at, Full().looked_at);
  EXPECT_EQ(first.values.at("product").beyond_of, "rms");
  EXPECT_EQ(first.values.at("product").excluded.at(0).high, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::signbit(first.values.at("product").excluded.at(0).observed));
  EXPECT_EQ(read.engine, "fast");
  EXPECT_EQ(read.counts.boost, 1);
}

TEST_F(ClassifiedTest, WhatIsNotOfTheseResultsIsLeftOut) {
  Classified faulty;
  faulty.fault = "broke";
  {
    const auto writer = ClassifiedWriter::Open(run_.dir, "id");
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->Store("a", "of an older case", "emulated", Full()));
    ASSERT_TRUE(writer->Store("a", "1", "another", Full()));
    ASSERT_TRUE(writer->Store("b", "2", "emulated", faulty));
  }
  EXPECT_TRUE(Read().results.empty());
  run_.header.id = "another run";
  ASSERT_TRUE(ClassifiedWriter::Open(run_.dir, "id")->Store("a", "1", "emulated", Full()));
  EXPECT_TRUE(Read().results.empty());
  ASSERT_TRUE(ClassifiedWriter::Open(run_.dir, "another run"));
  run_.header.id = "id";
  EXPECT_TRUE(Read().results.empty()) << "lines of the run before are gone";
}

TEST_F(ClassifiedTest, ReadOneByOneItIsTheSame) {
  Classified later = Full();
  later.values["product"].label = "another label";
  {
    const auto writer = ClassifiedWriter::Open(run_.dir, "id");
    ASSERT_TRUE(writer->Store("a", "1", "emulated", Full()));
    ASSERT_TRUE(writer->Store("b", "of an older case", "emulated", Full()));
    ASSERT_TRUE(writer->Store("b", "2", "another", Full()));
    ASSERT_TRUE(writer->Store("a", "1", "emulated", later));
    ASSERT_TRUE(writer->Oracle("boost", {.fast = 0, .compared = 0, .boost = 7}));
  }
  const auto opened = OpenClassified(run_);
  ASSERT_TRUE(opened) << opened.error().Text();
  EXPECT_TRUE(opened->results.empty());
  EXPECT_EQ(opened->engine, "boost");
  EXPECT_EQ(opened->counts.boost, 7);
  EXPECT_FALSE(opened->recorded->Has("b", "emulated"));
  EXPECT_FALSE(opened->recorded->Has("b", "another"));
  ASSERT_TRUE(opened->recorded->Has("a", "emulated"));
  const auto read = opened->recorded->Read("a", "emulated");
  ASSERT_TRUE(read) << read.error().Text();
  EXPECT_EQ(TextOf(*read), TextOf(later)) << "the later line replaces the earlier one";
  run_.header.id = "another run";
  const auto other = OpenClassified(run_);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->recorded->Has("a", "emulated"));
}

TEST_F(ClassifiedTest, ALineInAnotherOrderOfKeysIsReadToo) {
  ASSERT_TRUE(ClassifiedWriter::Open(run_.dir, "id"));
  const auto file = run_.dir / "classified.jsonl";
  const std::string record =
      R"({"values":{},"type":"classified","digest":"1","case":"a","backend":"emulated"})";
  const std::string line = R"({"crc":")" + Crc32Text(record) + R"(","record":)" + record + "}\n";
  ASSERT_TRUE(WriteFileBytes(file, testing::ReadAll(file.string()) + line));
  const auto opened = OpenClassified(run_);
  ASSERT_TRUE(opened) << opened.error().Text();
  ASSERT_TRUE(opened->recorded->Has("a", "emulated"));
  EXPECT_TRUE(opened->recorded->Read("a", "emulated")->values.empty());
}

TEST_F(ClassifiedTest, DamageIsSeenWhenItIsOpenedAndWhenItIsRead) {
  ASSERT_TRUE(ClassifiedWriter::Open(run_.dir, "id")->Store("a", "1", "emulated", Full()));
  const auto file = run_.dir / "classified.jsonl";
  const auto opened = OpenClassified(run_);
  ASSERT_TRUE(opened);
  std::string damaged = testing::ReadAll(file.string());
  damaged[damaged.find("bfloat16")] = 'd';
  ASSERT_TRUE(WriteFileBytes(file, damaged));
  const auto read = opened->recorded->Read("a", "emulated");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().Text().find("classified.jsonl:2:1: the record's checksum is wrong"),
            std::string::npos)
      << read.error().Text();
  const auto again = OpenClassified(run_);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().Text().find("ulpscope judge writes it anew"), std::string::npos);
  ASSERT_TRUE(WriteFileBytes(file, damaged.substr(0, 40)));
  EXPECT_FALSE(opened->recorded->Read("a", "emulated"));
}

TEST_F(ClassifiedTest, ATornEndIsForgivenAndOtherDamageRefused) {
  ASSERT_TRUE(ClassifiedWriter::Open(run_.dir, "id")->Store("a", "1", "emulated", Full()));
  const auto file = run_.dir / "classified.jsonl";
  const std::string whole = testing::ReadAll(file.string());
  ASSERT_TRUE(ClassifiedWriter::Open(run_.dir, "id")->Store("b", "2", "emulated", Full()));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5);
  EXPECT_EQ(Read().results.size(), 1u);
  ASSERT_TRUE(ClassifiedWriter::Open(run_.dir, "id"));
  EXPECT_EQ(testing::ReadAll(file.string()), whole) << "the torn line is cut off before more is written";
  std::string damaged = whole;
  damaged[damaged.find("bfloat16")] = 'd';
  ASSERT_TRUE(WriteFileBytes(file, damaged));
  const auto read = ReadClassified(run_);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().Text().find("ulpscope judge writes it anew"), std::string::npos)
      << read.error().Text();
}

}  // namespace
}  // namespace ulpscope
