"""benchkit: Unix filters that turn raw results of AI benchmarks into answers a person can act on."""

import os
import sys

__version__ = "0.1.0"

# BLAS rounds differently on different numbers of threads: equal bytes on any machine size need one. It also starts
# faster, and the products here are many and small. Too late once numpy is imported.
if "numpy" not in sys.modules:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
