"""Worker processes: how many, and what each of them is given."""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pt_neural._arguments import checked_number
from pt_neural._environment import HEAP_VARIABLE, PROCESSORS_VARIABLE


@dataclass(frozen=True)
class Workers:
    """Worker processes of Ray.

    Args:
        number: How many work at a time. Default: as many as the cluster has room for.
        cpus: Processors of each, and threads that it computes with.
        gpus: GPUs of each, or the share of one.
        heap: The largest heap of the Java of each, such as ``"2g"``. Default: a quarter of the machine's memory, which
            is too much for several workers on one machine.

    Raises:
        TypeError: If a number is of the wrong kind.
        ValueError: If one is out of range.

    Example::

        dssm.index("dssm.vectors", shards, workers=pn.cluster.Workers(4, gpus=1))
    """

    number: int | None = None
    cpus: float = 1
    gpus: float = 0
    heap: str | None = None

    def __post_init__(self):
        if self.number is not None:
            checked_number("workers", self.number, int, least=1)
        checked_number("cpus", self.cpus, float, above=0)
        checked_number("gpus", self.gpus, float, least=0)

    def count(self, ray: ModuleType) -> int:
        """How many there are in a cluster; ValueError if no machine has room for one: Ray itself would wait forever."""
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        rooms = [int(machine.get("CPU", 0) // self.cpus) for machine in machines]
        if self.gpus:
            rooms = [min(room, int(m.get("GPU", 0) // self.gpus)) for room, m in zip(rooms, machines, strict=True)]
        if not any(rooms):
            processors, devices = (max(m.get(name, 0) for m in machines) for name in ("CPU", "GPU"))
            raise ValueError(
                f"a worker needs {self.cpus:g} processors and {self.gpus:g} GPUs, but no machine of the cluster has "
                f"more than {processors:g} and {devices:g}; ask for fewer"
            )
        return self.number or sum(rooms)

    def options(self) -> dict[str, Any]:
        """What Ray is to give to each: as many threads as processors, in Java too."""
        threads = str(max(1, math.ceil(self.cpus)))
        variables = {"OMP_NUM_THREADS": threads, PROCESSORS_VARIABLE: threads}
        if self.heap is not None:
            variables[HEAP_VARIABLE] = self.heap
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, "runtime_env": {"env_vars": variables}}
