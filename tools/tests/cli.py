# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the command `albedo` share. They run in the top folder of the sources, with the build as TEST_BUILD."""

import os
import subprocess
import tempfile
import unittest

BUILD = os.path.abspath(os.environ.get("TEST_BUILD", "build"))
ALBEDO = os.path.join(BUILD, "bin", "albedo")

SCENARIO = """[network]
hosts = 4
[workload]
kind = permutation
size = 100000
[variant slow]
network.rate = 10Gb/s
[variant fast]
network.rate = 100Gb/s
[expect]
done = 4
slow/fast.fct_max = 4..12
"""


def albedo(*arguments, environment=None, cwd=None):
    """(exit status, stdout, stderr)"""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ALBEDO_")}
    clean.update(environment or {})
    done = subprocess.run([ALBEDO, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, env=clean, cwd=cwd, timeout=60)
    return done.returncode, done.stdout, done.stderr


class SimTest(unittest.TestCase):
    """A folder of its own, with a scenario in it."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = self.path("scenario")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(SCENARIO)

    def path(self, name):
        return os.path.join(self.folder.name, name)
