"""The results store: one immutable file per run, safe for many writers, read as tables through DuckDB.

Queries are read-only: typed views over the record files.
"""

from __future__ import annotations

from opticoll.analysis.store.records import Store
from opticoll.analysis.store.tables import query

__all__ = ["Store", "query"]
