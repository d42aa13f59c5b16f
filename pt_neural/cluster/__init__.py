"""Several processes and machines by Ray: pipelines, and the building of indexes a shard at a time."""

from pt_neural.cluster.connection import connect, disconnect
from pt_neural.cluster.on_ray import OnRay, on_ray
from pt_neural.cluster.workers import Workers

__all__ = ["OnRay", "Workers", "connect", "disconnect", "on_ray"]
