import os
import signal
from pathlib import Path

# Tests that share a machine with others, one process beside another, take one core each; libraries read this once.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Ray reads this once in a process, too. By default it writes a token into the home folder, and a process that has made
# one cluster with tokens refuses what a second one without them asks of it, so that its actors "never ran".
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import pandas as pd
import pyterrier as pt
import pytest
import torch
from hypothesis import settings

# Most processes of the tests ask Java a few questions; its second compiler would take a third of their time.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")

os.environ.setdefault("PT_TEST_TRANSFORMER_REPORTS", "0")
os.environ.setdefault("MPLBACKEND", "agg")

# Files that take a minute or so, the slowest first: those with long tests, then others. They are begun first, so that
# none is left at the end.
SLOW = ["test_docs", "test_processes", "test_on_ray", "test_notebooks", "test_writers", "test_loop"]
SLOW += ["faults/test_lucene", "test_concurrency", "test_pictures", "test_ray_shards", "test_pyserini", "test_readme"]
SLOW += ["pipelines/test_ssi"]
SLOW += ["test_contract", "test_lazy", "test_classics", "rankers/test_parts", "test_retriever"]
SLOW += ["pipelines/test_results", "test_representation", "test_door", "test_lucene_shards"]
SLOW += ["match_tensor/test_learning", "test_sharded", "test_jvm"]

# A first example may load a library; what is slow shows in pytest's durations.
settings.register_profile("suite", deadline=None, max_examples=30)
settings.load_profile("suite")

# A shell's background job ignores Ctrl-C, and so would the processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Schematics otherwise ask the documentation site for links, and tests have no network.
pt.documentation._cached_objects_inv = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        path = item.path.with_suffix("").as_posix()
        return next((number for number, name in enumerate(SLOW) if path.endswith(f"/{name}")), len(SLOW))

    items.sort(key=place)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Each test draws the same numbers, alone or after others, also where it or its fixtures set no seed."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def collections() -> Path:
    """The folder of real test collections; tests that need it are skipped without it."""
    place = os.environ.get("PT_NEURAL_COLLECTIONS")
    if not place or not Path(place).is_dir():
        pytest.skip("PT_NEURAL_COLLECTIONS does not name a folder of collections")
    return Path(place)


@pytest.fixture
def corpus() -> list[dict[str, str]]:
    """Six small documents on three subjects."""
    return [
        {"docno": "d1", "title": "Cambridge", "text": "The university city of Cambridge lies on the River Cam."},
        {"docno": "d2", "title": "Oxford", "text": "Oxford is a university city, home of the oldest university."},
        {"docno": "d3", "title": "Giraffes", "text": "The giraffe is the tallest living animal, with a long neck."},
        {"docno": "d4", "title": "Okapi", "text": "The okapi is the closest relative of the giraffe."},
        {"docno": "d5", "title": "BM25", "text": "A ranking function that counts the terms of a query."},
        {"docno": "d6", "title": "Rivers", "text": "The river runs long past the city to the sea."},
    ]


@pytest.fixture
def topics() -> pd.DataFrame:
    return pd.DataFrame(
        {"qid": ["q1", "q2", "q3"], "query": ["university city", "giraffe neck", "ranking query terms"]}
    )


@pytest.fixture(scope="module")
def cluster():
    """Two raylets on this machine, as if they were two machines; this process is connected to them."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    import pt_neural as pn

    machines = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 2,
            "object_store_memory": 100_000_000,
            "include_dashboard": False,
            "_system_config": {
                "health_check_period_ms": 500,
                "health_check_failure_threshold": 8,
                "prestart_worker_first_driver": False,
            },
        },
    )
    machines.add_node(num_cpus=2, object_store_memory=100_000_000)
    pn.cluster.connect(machines.address)
    yield machines
    pn.cluster.disconnect()
    machines.shutdown()
