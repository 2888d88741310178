# SPDX-License-Identifier: Apache-2.0
"""`orrery sweep --mpi` under OpenMPI's mpirun, which is skipped where there is none."""
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from sweep_case import PATIENCE, SweepCase


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
@unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed (Debian: openmpi-bin)")
class Mpi(SweepCase):
    def mpirun(self, processes: int, *more: str) -> subprocess.Popen:
        command = ["mpirun", *more, "--oversubscribe", "-np", str(processes), "sh", "-c",
                   'echo $$ > "$0.$OMPI_COMM_WORLD_RANK"; exec "$@"', f"{self.folder.name}/pid", self.binary,
                   "sweep", self.study, "--store", self.store, "--mpi", "--csv", self.csv]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})

    def kill_rank_1(self, pool: subprocess.Popen):
        self.wait_for(pathlib.Path(f"{self.store}.rank1"), 5, pool)
        os.kill(int(pathlib.Path(f"{self.folder.name}/pid.1").read_text()), signal.SIGKILL)

    def test_a_pool_makes_the_same_rows(self):
        self.assertEqual(self.mpirun(3).wait(PATIENCE), 0)
        self.assert_whole()

    def test_what_mpirun_stops_goes_on_with_any_number_of_processes(self):
        pool = self.mpirun(3)
        self.kill_rank_1(pool)
        self.assertNotEqual(pool.wait(PATIENCE), 0)  # it stops the others as well
        self.assertEqual(self.mpirun(2).wait(PATIENCE), 0)
        self.assert_whole()

    def test_with_recovery_the_others_go_on(self):
        pool = self.mpirun(3, "--enable-recovery")
        self.kill_rank_1(pool)
        pool.wait(PATIENCE)
        self.assert_whole()


if __name__ == "__main__":
    unittest.main()
