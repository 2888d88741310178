# SPDX-License-Identifier: Apache-2.0
"""Laws of `orrery sweep`: a sweep that is killed, cut into shards or shared by processes ends with the very same
rows as one that runs through."""
import os
import pathlib
import signal
import unittest

from sweep_case import PATIENCE, POINTS, SweepCase, rows_in


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class Sweep(SweepCase):
    def test_the_csv_has_every_point_in_order(self):
        lines = self.whole.read_text().splitlines()
        self.assertEqual([line.split(",")[0] for line in lines[1:]], [str(i) for i in range(POINTS)])

    def test_a_sweep_that_is_killed_goes_on_where_it_was(self):
        process = self.start("--threads", "2")
        self.wait_for(self.store, 10, process)
        seen = rows_in(self.store)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = rows_in(self.store)
        self.assertGreaterEqual(kept, seen)
        self.assertLess(kept, POINTS)
        said = self.sweep(self.study, "--store", self.store, "--csv", self.csv, "--threads", "1")
        self.assertIn(f"{POINTS - kept} points run, {kept} known", said)
        self.assert_whole()

    def test_shards_together_are_the_whole(self):
        parts = [f"{self.store}.shard{k}" for k in range(3)]
        for k, part in enumerate(parts):
            self.sweep(self.study, "--store", part, "--shard", f"{k}/3")
        self.assertEqual(sum(rows_in(pathlib.Path(part)) for part in parts), POINTS)
        self.sweep("--merge", *parts, "--store", self.store, "--csv", self.csv)
        self.assert_whole()

    def test_processes_finish_the_points_of_one_that_is_killed(self):
        # As mpirun would start them, but that nobody stops the others.
        processes = [self.start("--mpi", "--csv", self.csv, env={**os.environ, "OMPI_COMM_WORLD_RANK": str(rank)})
                     for rank in range(3)]
        self.wait_for(pathlib.Path(f"{self.store}.rank1"), 5, processes[1])
        processes[1].send_signal(signal.SIGKILL)
        self.assertEqual([process.wait(PATIENCE) for process in processes], [0, -signal.SIGKILL, 0])
        self.assert_whole()
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["s.csv", "s.db"])


if __name__ == "__main__":
    unittest.main()
