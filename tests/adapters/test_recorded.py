# The recorded adapter through its socket: the rows of each record are answered with its results, anything else is refused.
"""usage: test_recorded.py [FOLDER_OF_BINARIES]   (default build/release/bin)"""

import glob
import os
import struct
import sys
import unittest

from driver import Adapter, Tensor, read_safetensors, step

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
BIN = os.path.join(ROOT, "build/release/bin")
if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
    BIN = sys.argv.pop(1)
BINARY = os.path.join(BIN, "ulpscope-recorded")
DATA = os.path.join(ROOT, "backends/recorded/data")
RECORDS = {os.path.basename(path)[: -len(".safetensors")]: path for path in glob.glob(DATA + "/*.safetensors")}


def half(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


def question(record, rows, result="float32"):
    k = record["a"].shape[1]
    c = record["c"].values[:rows]
    return {
        "a": Tensor(record["a"].dtype, [rows, 1, k], record["a"].values[: rows * k]),
        "b": Tensor(record["b"].dtype, [rows, k, 1], record["b"].values[: rows * k]),
        "c": Tensor(result, [rows, 1, 1], c if result == "float32" else [half(value) for value in c]),
    }


def program(record, result):
    wider = {} if record["a"].dtype == result else {"out_dtype": result}
    return [step("baddbmm", "c", "a", "b", name="d", **wider)]


@unittest.skipUnless(os.path.exists(BINARY), f"{BINARY} is not built")
class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.adapter = Adapter([BINARY, DATA], "recorded")
        assert cls.adapter.hello["error"] == "", cls.adapter.hello
        cls.records = {name: read_safetensors(path) for name, path in RECORDS.items()}

    @classmethod
    def tearDownClass(cls):
        cls.adapter.close()

    def refused(self, tensors, steps, says, observe=("d",)):
        reply = self.adapter.run(tensors, steps, list(observe))
        self.assertEqual(reply.kind, "unsupported", reply)
        self.assertIn(says, reply.text)
        self.assertEqual(reply.tensors, {})

    def test_all_seven_records_are_there_and_answered_in_every_row(self):
        self.assertEqual(len(self.records), 7)
        answered = 0
        for name, record in self.records.items():
            for result, tensor in (("float32", "d_fp32"), ("float16", "d_fp16")):
                if tensor not in record:
                    continue
                for rows in (5000, 1):
                    reply = self.adapter.run(question(record, rows, result), program(record, result), ["d"])
                    self.assertEqual(reply.kind, "completed", reply)
                    self.assertEqual(reply.tensors["d"].dtype, result)
                    self.assertEqual(list(reply.tensors["d"].values), list(record[tensor].values[:rows]))
                    self.assertEqual(reply.knobs["record"], name)
                    answered += rows
        self.assertEqual(answered, 10 * 5001)

    def test_one_changed_bit_anywhere_is_refused(self):
        record = self.records["h200_bf16"]
        for name, says in (("a", "not rows of any record"), ("b", "not rows of any record"), ("c", "the addend is not")):
            tensors = question(record, 5000)
            values = list(tensors[name].values)
            values[-1] = -values[-1]
            tensors[name] = Tensor(tensors[name].dtype, tensors[name].shape, values)
            self.refused(tensors, program(record, "float32"), says)

    def test_rows_from_elsewhere_than_the_front_are_refused(self):
        record = self.records["v100_fp16"]
        tensors = question(record, 10)
        shifted = {
            name: Tensor(tensor.dtype, [9, *tensor.shape[1:]], tensor.values[len(tensor.values) // 10 :])
            for name, tensor in tensors.items()
        }
        self.refused(shifted, program(record, "float32"), "not rows of any record")

    def test_other_programs_are_refused(self):
        record = self.records["a100_bf16"]
        tensors = question(record, 4)
        good = program(record, "float32")
        self.refused(tensors, [step("bmm", "a", "b", name="d")], "one baddbmm")
        self.refused(tensors, good + [step("neg", "d", name="e")], "one baddbmm")
        self.refused(tensors, [step("baddbmm", "c", "a", "b", name="d", out_dtype="float32", beta=2)], "beta is 1")
        self.refused(tensors, [step("baddbmm", "c", "a", "b", name="d")], "dtype of the result")
        self.refused(tensors, good, "only the result", observe=("d", "c"))
        self.refused(question(record, 4, "float16"), program(record, "float16"), "no results stored as float16")
        flat = {name: Tensor(t.dtype, t.shape[:1] + t.shape[1:][::-1], t.values) for name, t in tensors.items()}
        self.refused(flat, good, "shapes")

    def test_a_named_record_answers_its_own_rows_alone(self):
        with_name = Adapter([BINARY, DATA], "recorded", {"record": "a100_bf16"})
        try:
            own, other = self.records["a100_bf16"], self.records["a100_fp16"]
            self.assertEqual(with_name.run(question(own, 7), program(own, "float32"), ["d"]).kind, "completed")
            refused = with_name.run(question(other, 7), program(other, "float32"), ["d"])
            self.assertIn("not rows of record a100_bf16", refused.text)
        finally:
            with_name.close()

    def test_unknown_records_and_folders_are_said_at_the_hello(self):
        for command, knobs, says in (
            ([BINARY, DATA], {"record": "tpu"}, "no record 'tpu'"),
            ([BINARY, "/nonexistent"], {}, "no records in"),
            ([BINARY], {}, "no records in"),
        ):
            adapter = Adapter(command, "recorded", knobs)
            self.assertIn(says, adapter.hello["error"])
            adapter.close()


if __name__ == "__main__":
    unittest.main()
