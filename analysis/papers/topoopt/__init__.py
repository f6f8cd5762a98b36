"""TopoOpt: claims and figures; and what they share, simulated iteration times.

Simulated iteration times of figures 11, 12, 16, 17, 27 and 28 of the TopoOpt paper, as a table.

``python -m opticoll.analysis.papers.topoopt.iteration_figures`` writes ``iteration_times.csv`` beside this module. The
same cells give the same file, whatever the order in which they were simulated.

Columns: figure, model, batch (samples per GPU), network, degree, link_gbps, pause_us and interval_ms of circuits that
change, and seconds. Ends of flows are merged within 0.2 % of the time of Eq. (1), or of the time since the start.

What the paper leaves open and is chosen here: the fat-tree of similar cost has 1.4/5.7 of the bandwidth (section 5.5);
data parallelism, tables placed whole; one shortest path where servers forward, an even split over switches; the
expander is a random regular graph; OCS-reconfig and SiP-ML choose circuits every 50 ms.
"""
