"""All-gather by m-ary trees on optical lines and rings (paper: OpTree).

Steps of OpTree's all-gather trees: closed forms for real radices, and the best tree with integer radices.

Source  OpTree, section III-D.1, Theorems 1-3 with proofs, Table I, (1)-(3)

Real radices. An m-ary tree of depth k on n nodes with w wavelengths, m = n^(1/k), takes S steps and time T:

    S(k)  = n m / (8w) + (k-1) n m / (4w) = n m (2k-1) / (8w)       (Theorem 1)
    k*    = round((ln n + sqrt(ln^2 n - 2 ln n)) / 2)               (Theorem 2)
    T     = (d/B + a) S                                             (Theorem 3)

d data of a node [bytes], B bandwidth of a wavelength [bytes/s], a delay of a step [s] (reconfiguration and conversion).
In packets of 128 bytes and flits of 32 bytes (section IV-A), with q = ceil(d/128) packets and a clock of f cycles/s for
the O/E/O conversion of one cycle per flit, which the paper does not state (:class:`StepCost`):

    T / S = 128 q / B + r + h / f,    h = 4 (pipelined: the last packet is converted alone), or 4 q (serial)

T / S depends only on d, so ratios of times are ratios of steps for any clock.
dS/dk = 0 is 2k^2 - (2k-1) ln n = 0; its larger root is the minimum. It is real for ln n >= 2, n >= 8.

Table I, steps for n = 1024, w = 64 in parentheses: ring n - 1 (1023), neighbour exchange n/2 (512), WRHT with
p = 2w + 1: p ceil(log_p n) + 1 (259), one stage ceil(n^2/8)/w (2048; the table prints 128), OpTree min_k S(k) (70). The
available scan lacks the formulas; WRHT's is reconstructed from 259 and the text's ranking at w = 96 and 128.

Integer radices. A tree on n nodes is given by its radices m_1 .. m_k >= 2. After j stages a node has at most
P_j = m_1 ... m_j chunks and its group has at most s_j = ceil(n / P_j) nodes; P_k >= n. The stage from P = P_{j-1} with
radix m = m_j takes, by ``count``,

    lemma     ceil(s_j L(m) P / w), L(m) Lemma 1's wavelengths as printed, with every ceiling: the paper's count.
              Stage 1 uses the whole ring, L(m) = ceil(m^2/8), the others segments, L(m) = floor(m^2/4)
    exact     the same with the proven minimum: on the ring all s_1 subsets together take
              ceil(s_1 floor(m^2/4) / 2), because mirrored assignments share their odd wavelength
    printed   Theorem 1's term, rounded up: ceil(n m / (8w)) on the ring, ceil(n m / (4w)) on a segment

steps: s_j subsets in a group (groups use disjoint segments and share wavelengths), P chunks per node, one chunk per
wavelength and step. On ``wdm-line`` stage 1 is on a segment too. The cost depends only on (P, m), because
ceil(ceil(n/a)/b) = ceil(n/(ab)). So trees are walks 1 -> P_1 -> P_2 -> ... -> n over products, where n stands for all
products of at least n, and the best tree is a shortest walk. The last radix is at most ceil(n/P).
"""
