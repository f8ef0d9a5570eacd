"""executor: threads that turn a plan into batches, a cache, or a job of Ray Data."""

from ._cache import cache_columns as cache_columns
from ._corrupt import CorruptSample as CorruptSample
from ._plan_batches import PlanBatches as PlanBatches
from ._ray_data import ray_dataset as ray_dataset
from ._speed import PlanSpeed as PlanSpeed, plan_speed as plan_speed
