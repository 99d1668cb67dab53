"""The kept datasheets: each fits the words of the schema, the table is that of the files, and the findings stated from them hold."""

import importlib.machinery
import importlib.util
import json
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "reports" / "datasheets"


def load_script():
    loader = importlib.machinery.SourceFileLoader("datasheets", str(ROOT / "ci" / "datasheets"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("datasheets", loader))
    loader.exec_module(module)
    return module


SCRIPT = load_script()
SHEETS = SCRIPT.read_kept()
SCHEMA = json.loads((ROOT / "reports" / "datasheet.schema.json").read_text())


def words(name, key):
    return next(line["words"] for line in SHEETS[name]["lines"] if line["key"] == key)


class Datasheets(unittest.TestCase):
    def test_every_question_has_its_datasheet_and_no_other_is_there(self):
        asked = {SCRIPT.name_of(*question) for question in SCRIPT.questions()}
        self.assertGreater(len(asked), 100)
        # Those of a GPU machine came in a bundle (ci/gpu), under its name.
        brought = {name for name in SHEETS if "@cuda" in SHEETS[name]["backend"]}
        self.assertEqual({name.partition(".")[0] for name in brought}, {"h100"})
        self.assertEqual(asked, set(SHEETS) - brought)

    def test_an_h100_is_what_its_papers_say(self):
        said = {"bfloat16": "blockfma(16,25,rz)", "float16": "blockfma(16,25,rz)", "float32": "float32", "float64": "float64"}
        checked = 0
        for name, sheet in SHEETS.items():
            if sheet["backend"] in ("cublas@cuda", "cublaslt@cuda", "torch-eager@cuda"):
                self.assertEqual(words(name, "accumulator"), [said[sheet["dtype"]]], name)
                checked += 1
        self.assertEqual(checked, 16)
        self.assertEqual(words("h100.cublas-32F_FAST_TF32.matmul.float32", "input_rounding"), ["tf32_rne"])

    def test_each_holds_what_the_schema_names(self):
        required = set(SCHEMA["required"])
        line_keys = SCHEMA["definitions"]["line"]["properties"]["key"]["enum"]
        read = 0
        for name, sheet in SHEETS.items():
            self.assertEqual(set(sheet), required, name)
            self.assertIn(sheet["outcome"], ("read", "refused"), name)
            if sheet["outcome"] == "refused":
                self.assertNotEqual(sheet["reason"], "", name)
                continue
            read += 1
            self.assertEqual(sorted(line["key"] for line in sheet["lines"]), sorted(line_keys), name)
            self.assertGreater(sheet["dots"], 3000, name)
            self.assertGreater(len(sheet["models"]), 0, name)
            self.assertTrue(sheet["versions"] and sheet["machine"].get("isa"), name)
        self.assertGreater(read, 100)

    def test_the_table_is_that_of_the_files(self):
        readme = (FOLDER / "README.md").read_text()
        self.assertIn(SCRIPT.table([SHEETS[name] for name in sorted(SHEETS)]), readme)

    def test_what_they_taught(self):
        # A float32 buffer that holds 16 bits.
        for backend in ("torch-aot-eager", "torch-inductor"):
            for dtype in ("bfloat16", "float16"):
                self.assertEqual(words(f"{backend}.matmul.{dtype}-float32", "intermediate_rounding"), [dtype])
        self.assertEqual(words("jax.matmul.bfloat16-float32", "intermediate_rounding"), ["none"])
        # oneDNN's bfloat16 product: two multiply-adds per pair, the odd-numbered one first, subnormals taken as zero.
        self.assertEqual(words("torch-eager.matmul.bfloat16", "order"), ["sequential in pairs, the odd one first"])
        self.assertEqual(words("torch-eager.matmul.bfloat16", "subnormal_operands"), ["flushed"])
        # Without oneDNN, and in a small batch with it, another kernel keeps them.
        self.assertEqual(words("torch-eager-mkldnn-off.matmul.bfloat16", "subnormal_operands"), ["kept"])
        self.assertEqual(words("torch-eager.dot.bfloat16", "subnormal_operands"), ["kept"])
        # The order is oneDNN's, the flushing the instruction's; and a float32 result can be requested.
        capped = "onednn-onednn-max-cpu-isa-AVX512-CORE.matmul.bfloat16-float32"
        for key, instruction, without in (("order", "sequential in pairs, the odd one first", "sequential in pairs, the odd one first"),
                                          ("subnormal_operands", "flushed", "kept"), ("subnormal_results", "flushed", "kept"),
                                          ("intermediate_rounding", "none", "none")):
            self.assertEqual(words("onednn.matmul.bfloat16-float32", key), [instruction])
            self.assertEqual(words(capped, key), [without])
        # BLIS on a processor that it does not know.
        self.assertEqual(SHEETS["blis-blis-arch-type-detected.matmul.float32"]["versions"]["arch"], "generic")
        self.assertEqual(words("blis-blis-arch-type-detected.matmul.float32", "product"), ["exact", "float32"])
        self.assertEqual(words("blis-blis-arch-type-zen3.matmul.float32", "product"), ["exact"])
        # inductor adds to the product before it is rounded.
        self.assertEqual(words("torch-inductor.matmul.bfloat16", "rounding_before_consumer"), ["none"])
        self.assertEqual(words("torch-aot-eager.matmul.bfloat16", "rounding_before_consumer"), ["bfloat16"])
        # XLA flushes subnormals in float32 and float64, not in float16.
        for dtype, found in (("float32", "flushed"), ("float64", "flushed"), ("float16", "kept")):
            self.assertEqual(words(f"jax.matmul.{dtype}", "subnormal_results"), [found], dtype)
        # One OpenBLAS product, two orders.
        haswell = words("openblas-openblas-coretype-Haswell.matmul.float32", "order")
        self.assertEqual(sorted(haswell), ["2 lanes", "sequential"])
        # Settings that are taken and change nothing here.
        for name in ("jax-jax-matmul-precision-BF16-BF16-F32.matmul.float32", "torch-eager-float32-matmul-precision-medium.matmul.float32"):
            self.assertEqual(words(name, "input_rounding"), ["as_is"], name)


if __name__ == "__main__":
    unittest.main()
