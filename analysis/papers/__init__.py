"""The figures of the papers, redrawn from stored results.

Markers are our results; lines and stars are statements of the paper, or its points where they have been digitised
(LuMorph). Most curves of the other papers are lost in their scans. A figure selects its rows from the view ``latest``
by formulation, family and method, not by study, so every run counts; it names the study that produces them.

Claims and figures are found by module name, see :func:`modules_about`.
"""
