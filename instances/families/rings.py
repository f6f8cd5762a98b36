"""Rings, paths, stars, complete and complete bipartite graphs: the families with textbook optima."""

from __future__ import annotations

import numpy as np

from instances.spec import Dimensions, check_positive, family
from instances.topology import Topology, check_size
