"""Readers of external files: topologies, matrices and graphs.

Files are read within a size limit, ambiguous JSON is refused, and file names are pinned to their contents. A setting
``file:PATH`` is pinned as ``file:PATH#sha256=DIGEST``. Reading the pinned text gives the same bytes or an error, and
the resume key of a task, which contains its settings, changes with the contents of the file.
"""
