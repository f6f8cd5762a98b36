"""Topologies and traffic of distributed training on direct-connect optics (paper: TopoOpt).

Designs of server pools: circuits, rings of all-reduce groups and routes, with checker, bounds and iteration time.

Source  TopoOpt, section 4; section 5.4, Eq. (1)
Data    V servers of degree d; T_st >= 0 point-to-point traffic [bytes], (n,n); groups k of servers M_k, each member of
        which sends S_k bytes over its hop of a ring all-reduce
Design  circuits c, directed from tail to head, parallel ones allowed, (m,)
        rings r: a cyclic order of the members of group k(r) that carries the share w_r of S_k; or, as ``trees``, the
            places of the members in a pair of double binary trees (appendix A), each edge of which carries
            w_r S_k k / (4 (k - 1)) both ways, half of the summed bytes
        routes q: a chain of circuits without repeated servers that carries b_q bytes

Demand of the chosen rings   D = T + sum_r w_r S_k(r) [hop of r from s to t], (n,n)

A design is valid if
    degree      at most d circuits leave each server, and at most d enter it
    rings       every ring contains each member of its group once; the shares of each group's rings add up to 1
    routes      every route is such a chain
    demand      the routes from s to t together carry D_st
    loads       the given load of every circuit equals the sum over its routes
    max_load, bandwidth_tax   if given, equal the values computed from the loads

max load = max_c sum_{q over c} b_q [bytes]; divided by the bandwidth of a circuit it is the time of the slowest
circuit. Bandwidth tax (section 5.4) = sum_c load_c / sum_st D_st, 1 if nothing is forwarded.

As named arrays (circuits, groups and servers are numbered from 0)
    circuits (m,2)                          tail and head, sorted by both
    ring_start (R+1,), ring_order (.,)      ring r is ring_order[ring_start[r]:ring_start[r+1]], servers in order
    ring_group (R,), ring_share (R,)
    ring_trees (R,)                         1 where the order is that of trees, 0 of a ring; 0 everywhere if left out
    route_start (Q+1,), route_circuits (.,) route q is route_circuits[route_start[q]:route_start[q+1]], circuits
    route_bytes (Q,)
    loads (m,)                              given loads

Iteration time of a training job, Eq. (1):  T = R / (n B) + alpha A / (n B) + C

with R all-reduce and A point-to-point bytes of all servers together, n B the bandwidth of all servers, C the computing
time. alpha follows from the busiest circuit: with d circuits per server alpha = Lambda n d / A, where Lambda is the
largest point-to-point load of a circuit. For any routing alpha is at least the mean hops of a byte, with equality for
equal loads; an ideal switch has alpha = 1.
"""
