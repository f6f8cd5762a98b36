"""Efficient all-to-all schedules: claims and figures, and the choice of a schedule for a fabric.

The choice of a schedule follows figure 2 of the paper. The drawing is lost in our copy; the rules are those of the text
(sections 3, 3.1, 3.2 and appendix D). A fabric forwards in its *hosts* (store-and-forward: a node sends on what it
received in an earlier step) or in its *NICs* (cut-through, with source routes). Routes of NICs carry ``weighted`` or
``equal`` shares of the traffic of a pair. Hosts are a bottleneck if a node's links carry more than its host-to-NIC
bandwidth: the graph is then augmented (``+host=B``), and NICs that forward use no host bandwidth.

Two thresholds are ours, as the text gives none: a pair has *few* paths if it has, on average, at most as many shortest
paths as there can be arc-disjoint ones, which is the degree; integer programs are used up to 100 ranks (the text: less
than a hundred nodes).
"""
