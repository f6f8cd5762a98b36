"""Methods for SiP-ML's circuits: bisection and edge colouring over switches; first fit and programs of sets on a ring.

Periodic control (section 3.3; the paper's rule is in its lost appendix, this one is ours): at every interval the
remaining bytes D_p are read, and wavelengths are given one by one to the pair with the most bytes per circuit after one
more, D_p / (c_p + 1), in the shorter direction first and on the lowest free wavelength (:func:`ring_circuits`). A pair
without a free wavelength waits for the next interval.
"""
