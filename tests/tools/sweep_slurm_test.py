# SPDX-License-Identifier: Apache-2.0
"""`orrery sweep --slurm` on a cluster of one node: the test starts munged, slurmctld and slurmd in a folder of its
own and stops them. Skipped where they are not installed or cannot be started (they want to be root)."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from sweep_case import PATIENCE, POINTS, SweepCase, rows_in

DAEMONS = ("munged", "slurmctld", "slurmd")
PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])

CONFIGURATION = """\
ClusterName=sweep
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """The three daemons, in the foreground, so that they end with the test."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.processes = []
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        host = socket.gethostname().partition(".")[0]
        (folder / "key").write_bytes(os.urandom(1024))
        (folder / "key").chmod(0o400)
        (folder / "state").mkdir()
        (folder / "spool").mkdir()
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(host=host, folder=folder, ports=free_ports(2)))
        self.start("munged", "--foreground", "--force", f"--key-file={folder}/key",
                   f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid",
                   f"--log-file={folder}/munged.log", f"--seed-file={folder}/seed")
        self.wait_for(lambda: (folder / "munge.socket").exists())
        self.start("slurmctld", "-D")
        self.start("slurmd", "-D", "-N", host)
        self.wait_for(lambda: "idle" in self.run("sinfo", "--noheader", "--format=%t"))

    def start(self, name: str, *arguments: str):
        log = open(self.folder / f"{name}.out", "wb")
        self.processes.append(subprocess.Popen([shutil.which(name, path=PLACES), *arguments], stdout=log,
                                               stderr=log, env=self.environment))
        log.close()

    def run(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=PATIENCE).stdout

    def wait_for(self, happens):
        end = time.monotonic() + PATIENCE
        while not happens():
            dead = [process.args[0] for process in self.processes if process.poll() is not None]
            if dead or time.monotonic() > end:
                raise RuntimeError(f"{dead or 'the cluster'} did not start: {self.logs()}")
            time.sleep(0.1)

    def logs(self) -> str:
        texts = [path.read_text(errors="replace")[-300:] for path in sorted(self.folder.glob("*.out"))]
        return " | ".join(texts)

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class Slurm(SweepCase):
    def setUp(self):
        super().setUp()
        missing = [name for name in (*DAEMONS, "sbatch") if not shutil.which(name, path=PLACES)]
        if missing:
            self.skipTest(f"{', '.join(missing)} not installed (Debian: slurm-wlm, munge)")
        if os.geteuid() != 0:
            self.skipTest("only root may start slurmd")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cluster = Cluster.__new__(Cluster)
        cluster.processes = []
        self.addCleanup(cluster.stop)
        try:
            cluster.__init__(pathlib.Path(folder.name))
        except RuntimeError as why:
            self.skipTest(str(why))
        self.cluster = cluster

    def test_a_job_array_makes_the_same_rows(self):
        said = self.sweep(self.study, "--store", self.store, "--slurm", 3, "--threads", 1, "--slurm-options",
                          f"--output={self.folder.name}/%a.out", env=self.cluster.environment)
        self.assertIn("Submitted batch job", said)
        parts = [pathlib.Path(f"{self.store}.shard{k}") for k in range(3)]
        end = time.monotonic() + PATIENCE
        while self.cluster.run("squeue", "--noheader"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.2)
        self.assertEqual(sum(map(rows_in, parts)), POINTS)
        merge = said.splitlines()[-1].strip()
        subprocess.run(f"{merge} --csv {self.csv}", shell=True, check=True, stdout=subprocess.DEVNULL)
        self.assert_whole()


if __name__ == "__main__":
    unittest.main()
