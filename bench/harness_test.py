"""Checks what the harness computes; runs no program and reads no clock."""

import os
import pathlib
import sys
import tempfile
import unittest

import generate
import harness
import sides
import suites
import tables

KEYS = ["case", "metric", "unit", "better", "ours", "peer", "ratio", "spread", "target",
        "target_kind"]


def row(better, **more):
    return suites.Row("case", "metric", "unit", better, ("us", "k"), ("them", "k"), "them", **more)


class RowTest(unittest.TestCase):
    def test_ratio_above_one_is_ahead_whatever_the_direction(self):
        samples = {"us": {"k": [2.0]}, "them": {"k": [8.0]}}
        self.assertEqual(harness.build_row(row("lower"), samples)["ratio"], 4.0)
        self.assertEqual(harness.build_row(row("higher"), samples)["ratio"], 0.25)

    def test_spread_is_range_over_median(self):
        built = harness.build_row(row("lower"), {"us": {"k": [9.0, 10.0, 12.0]}})
        self.assertEqual(built["ours"], 10.0)
        self.assertAlmostEqual(built["spread"], 0.3)

    def test_a_skipped_peer_keeps_its_row(self):
        built = harness.build_row(row("lower"), {"us": {"k": [1.0]}})
        self.assertEqual(list(built), KEYS)
        self.assertIsNone(built["peer"])
        self.assertIsNone(built["ratio"])

    def test_targets(self):
        samples = {"us": {"k": [2.0]}, "them": {"k": [8.0]}}
        for target, kind, met in [(4, "ratio", "yes"), (5, "ratio", "no"), (2, "ours", "yes"),
                                  (1, "ours", "no")]:
            built = harness.build_row(row("lower", target=target, target_kind=kind), samples)
            self.assertEqual(harness.reached(built), met)


class FilterTest(unittest.TestCase):
    def test_only_rows_with_the_text_and_the_cases_they_need_are_left(self):
        class Side:
            def __init__(self, name): self.name, self.keys = name, None
            def select(self, keys): self.keys = keys

        us, them, others = Side("us"), Side("them"), Side("others")
        rows = [suites.Row("Softmax", "rate", "GB/s", "higher", ("us", "a"), ("them", "b"), "Them"),
                suites.Row("copy", "rate", "GB/s", "higher", ("us", "c"), ("others", "d"), "O")]
        kept = harness.filtered(suites.Suite("s", [us, them, others], rows), "softmax")
        self.assertEqual(kept.rows, rows[:1])
        self.assertEqual(kept.sides, [us, them])
        self.assertEqual((us.keys, them.keys, others.keys), ({"a"}, {"b"}, None))
        self.assertEqual(harness.filtered(suites.Suite("s", [us], rows), "none").rows, [])


class SideTest(unittest.TestCase):
    def test_a_missing_peer_is_skipped_with_its_reason_and_the_others_are_measured(self):
        class Present:
            name = "us"
            def prepare(self, context): pass
            def measure(self, context): return {"k": 1.0}

        os.environ["LOOM_MLIR_OPT"] = ""
        os.environ["LOOM_MLIR_OPT_MISSING"] = "it is not there"
        suite = suites.Suite("s", [Present(), sides.MlirOpt()], [])
        context = sides.Context(bin=pathlib.Path(), work=pathlib.Path(), quick=True)
        samples, skipped = harness.measure(suite, context)
        self.assertEqual(skipped, {"mlir-opt": "it is not there"})
        self.assertEqual(samples, {"us": {"k": [1.0, 1.0, 1.0]}})

    def test_every_row_names_sides_of_its_suite(self):
        for suite in suites.SUITES.values():
            names = {side.name for side in suite.sides}
            for each in suite.rows:
                self.assertIn(each.ours[0], names)
                if each.peer:
                    self.assertIn(each.peer[0], names)


class TableTest(unittest.TestCase):
    RESULT = {"suite": "s", "machine": "a machine", "commit": "abc", "date": "2026-01-02T03:04:05Z",
              "rows": [harness.build_row(row("lower", target=5, target_kind="ratio"),
                                         {"us": {"k": [2.0]}, "them": {"k": [8.0]}})]}

    def test_a_table_replaces_the_one_before_it_and_nothing_else(self):
        text = "before\n<!-- bench s -->\nold\n<!-- /bench -->\nafter\n"
        filled = tables.replace(text, self.RESULT)
        self.assertTrue(filled.startswith("before\n<!-- bench s -->\na machine, 2026-01-02, "))
        self.assertTrue(filled.endswith("\n<!-- /bench -->\nafter\n"))
        self.assertIn("| case | metric | 2 unit | 0 % | them: 8 unit | 4.00× | ≥ 5x, **missed** |",
                      filled)
        self.assertNotIn("old", filled)
        self.assertEqual(tables.replace(filled, self.RESULT), filled)

    def test_a_document_without_a_place_is_refused(self):
        with self.assertRaises(ValueError):
            tables.replace("<!-- bench other -->\n<!-- /bench -->\n", self.RESULT)

    def test_the_document_has_a_place_for_every_suite(self):
        text = tables.DOCUMENT.read_text()
        for name in suites.SUITES:
            tables.replace(text, {**self.RESULT, "suite": name})


class TwinTest(unittest.TestCase):
    def test_twins_spell_the_same_number_of_operations(self):
        with tempfile.TemporaryDirectory() as folder:
            loom, mlir = (pathlib.Path(folder, name) for name in ("a.loom", "a.mlir"))
            ops = generate.twins(8, loom, mlir)
            for path in (loom, mlir):
                lines = path.read_text().splitlines()
                spelled = [line for line in lines if line.strip() and line.lstrip()[0] != "}"]
                self.assertEqual(len(spelled), ops)


if __name__ == "__main__":
    sys.exit(unittest.main())
