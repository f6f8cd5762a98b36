"""From a model to the matrix of all solvers, and back: building, compiling, scaling, writing back."""
