"""The command line, as ``python -m opticoll.analysis.cli``."""

import sys

from opticoll.analysis.cli.main import main

sys.exit(main())
