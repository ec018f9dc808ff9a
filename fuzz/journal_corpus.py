#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the first inputs of fuzz/journal_fuzz.c to fuzz/corpus/journal."""
import pathlib

PREPARE, COMMIT, ABORT, OUTCOME = 1, 2, 3, 4


def record(kind, number, parts=(), odd=0, extra=b""):
    return bytes([kind, odd, 0]) + bytes([7, number]) + b"".join(bytes(p) for p in parts) + extra


def image(*records, region=200, boot=0):
    return bytes([1, region, boot]) + b"".join(records)


INPUTS = {
    "empty": b"",
    "raw": bytes(200),
    "header": image(),
    "prepared": image(record(PREPARE, 1, [(8, 16)], extra=bytes(16))),
    "committed": image(record(PREPARE, 1, [(8, 16)], extra=bytes(16)), record(COMMIT, 1)),
    "aborted": image(record(PREPARE, 1, [(8, 13)], extra=bytes(16)), record(ABORT, 1), record(OUTCOME, 2)),
    "beyond": image(record(PREPARE, 1, [(0xF0, 16)], extra=bytes(16))),
    "other-boot": image(record(PREPARE, 1, [(8, 16)], extra=bytes(16)), record(9, 1), record(COMMIT, 1), boot=1),
    "condition": image(record(PREPARE, 1, [(8, 16)], odd=8, extra=bytes([1]) + bytes(60))),
    "long": image(record(PREPARE, 1, [(8, 16)], odd=4, extra=bytes([0xF0]) + bytes(16))),
}

folder = pathlib.Path(__file__).parent / "corpus" / "journal"
folder.mkdir(parents=True, exist_ok=True)
for name, data in INPUTS.items():
    (folder / name).write_bytes(data)
