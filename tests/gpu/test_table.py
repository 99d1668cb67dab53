"""The table of GPU kernels, its cases and its score, without a GPU: a row can be checked, and a false verdict is found."""

import pathlib
import re
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import cases
import score
import table

TRUE = "in=as_is;prod=exact;acc=blockfma(16,25,rz);mid=none;out=float32_rne"


def scored(cell, verdict, models, classed="visible"):
    """The findings of one verdict."""
    cell = score.CELLS[cell]
    row = score.ROWS[cell.kernel]
    judged = {"cell": cell.name, "kernel": cell.kernel, "kind": row.kind, "status": "", "verdict": verdict, "class": classed,
              "false": score.contradicted(row, cell, models), "excluded": score.excluded(row, cell, models)}
    return {title for title, bad in score.findings([judged])[0].items() if bad}


class Table(unittest.TestCase):
    def test_rows(self):
        rows = table.load()
        honest = [row for row in rows.values() if row.kind == "honest"]
        self.assertGreater(len(honest), len(rows) / 4)
        for row in rows.values():
            self.assertIn(row.kind, ("honest", "narrow", "wrong", "formula", "open"))
            self.assertEqual(bool(row.falls), row.kind in ("narrow", "wrong"), row.name)
            module, _, function = row.run.partition(":")
            self.assertIn(f"\ndef {function}(call", (HERE / f"{module}.py").read_text(encoding="utf-8"), row.name)
            for pattern in row.words.values():
                re.compile(pattern)

    def test_cases(self):
        mine = cases.chosen()
        self.assertEqual({cell.kernel for cell in mine}, set(table.load()))
        self.assertEqual(len({cell.name for cell in mine}), len(mine))
        for cell in mine:
            self.assertEqual(cases.case(cell).count("contract:"), 1)

    def test_a_true_verdict_passes(self):
        self.assertEqual(scored("dot_f32acc__bf16_f32_512_normal", "CONFORMS", [TRUE]), set())
        self.assertEqual(scored("dot_tf32__f32_f32_512_normal", "VIOLATES", [TRUE.replace("as_is", "tf32_rz")]), set())
        self.assertEqual(scored("dot_b_in_bf16__f32_f32_64_normal", "VIOLATES",
                                ["in=w:bfloat16_rne,x:as_is;prod=exact;acc=float32;mid=none;out=float32_rne"]), set())
        cut = TRUE.replace("as_is", "w:as_is,x:tf32_rz")
        self.assertEqual(scored("z_tf32_missing__f32_f32_64_normal", "VIOLATES", [cut]), set())
        self.assertEqual(scored("z_store_rz__bf16_bf16_64_normal", "VIOLATES", [TRUE.replace("float32_rne", "bfloat16_rz")]), set())

    def test_a_false_verdict_fails(self):
        self.assertEqual(scored("dot_tf32__f32_f32_512_normal", "CONFORMS", [TRUE]), {"wrong CONFORMS", "false label"})
        self.assertEqual(scored("dot_f32acc__bf16_f32_512_normal", "VIOLATES", [TRUE.replace("mid=none", "mid=bfloat16")]),
                         {"wrong VIOLATES", "false label"})
        self.assertEqual(scored("steps_f32__f32_f32_64_normal", "UNDETERMINED", [TRUE.replace("blockfma(16,25,rz)", "bfloat16")]),
                         {"truth excluded", "false label"})
        self.assertIn("false label", scored("dot_b_in_bf16__f32_f32_64_normal", "VIOLATES",
                                            ["in=w:as_is,x:bfloat16_rne;prod=exact;acc=float32;mid=none;out=float32_rne"]))
        other = TRUE.replace("as_is", "w:tf32_rz,x:tf32_rz")  # of an operand that is hardly rounded
        self.assertEqual(scored("z_tf32_missing__f32_f32_64_normal", "VIOLATES", [other]), {"false label"})
        self.assertEqual(scored("z_store_rz__bf16_bf16_64_normal", "VIOLATES", [TRUE.replace("float32_rne", "bfloat16_rne")]), {"false label"})

    def test_what_does_not_show_is_no_gate(self):
        self.assertEqual(scored("dot_tf32__f32_f32_64_normal", "CONFORMS", [TRUE], "same bits"), set())
        self.assertEqual(scored("dot_f32acc__bf16_f32_64_normal", "CONFORMS", [TRUE.replace("blockfma(16,25,rz)", "float32")]), set())


if __name__ == "__main__":
    unittest.main()
